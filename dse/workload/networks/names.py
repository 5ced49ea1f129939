"""How a network is named: by any name of a shipped one, or by the path of a Hugging Face ``config.json``."""

import re
from functools import cache
from pathlib import Path

from dse.base.errors import InputError, accepted, shown
from dse.base.package_tables import read_table
from dse.base.text_file import there_is
from dse.workload.dtypes import Precision, precision
from dse.workload.networks.huggingface import config_network
from dse.workload.networks.network import Network, networks
from dse.workload.networks.stated_types import StatedTypes, types_of_file, types_of_name, wide_type


@cache
def _by_alias() -> dict[str, str]:
    names = {}
    for row in read_table("networks/networks.csv"):
        for alias in (row["network"], row["name"], *filter(None, row["aliases"].split(";"))):
            names[_key(alias)] = row["network"]
    return names


def _key(name: str) -> str:
    """What is compared of a name: its letters and digits, and whether anything parts two digits (1.3B is not 13B)."""
    digits = r"(?<=[0-9])[^a-z0-9]+(?=[0-9])"
    return ".".join(re.sub(r"[^a-z0-9]", "", part) for part in re.split(digits, name.lower()))


def load_network(name_or_path: str, where: str = "workload") -> Network:
    """Return a shipped network by any of its names, or the one that a Hugging Face config.json describes."""
    if not name_or_path.strip():
        raise InputError(f"{where}: names no network; give one of 'dse show networks' or a Hugging Face config.json")
    found, path = _shipped(name_or_path), _config_path(name_or_path)
    if path is not None:
        return config_network(path)
    if found is None:
        hint = accepted(name_or_path.rpartition("/")[2].lower(), networks())
        also = "(or give the path of a Hugging Face config.json)"
        raise InputError(f"{where}: no network is called {shown(name_or_path)}; {hint} {also}")
    return networks()[found]


TYPES = re.compile(
    r"[-_](fp8|fp4|nvfp4|mxfp4|bf16|int8|int4|w8a8|w4a16|w8a16|awq|gptq|gptq-int4|gptq-int8|dynamic)$", re.IGNORECASE
)
"""A last word of a published name that tells the types of its weights."""

RELEASE = re.compile(r"[-_](instruct|chat|it|base|hf|thinking|reasoning|[0-9]{4})$", re.IGNORECASE)
"""A last word of a published name that tells its training or its date."""

SIZED = re.compile(r"[0-9]b(?![a-z0-9])", re.IGNORECASE)
"""What states how large a network is: a name with it means one network whatever its training and its date."""


def _shipped(name: str) -> str | None:
    """The shipped network of a name, with its publisher's as on a hub (``Qwen/Qwen3-8B``) or without, and without the
    words that tell a release (``Qwen3-8B-Instruct-2507-FP8``)."""
    publisher, _, own = name.rpartition("/")
    names = [name, own] if publisher and "/" not in publisher else [name]
    while "/" not in publisher and (shorter := _without_last_word(own)) != own:
        names.append(own := shorter)
    return next((found for n in names if (found := _by_alias().get(_key(n)))), None)


def _without_last_word(name: str) -> str:
    """A name without its last word where that tells types or, of a name that states a size, a release."""
    plain = TYPES.sub("", name)
    shorter = RELEASE.sub("", plain) if plain == name else plain
    return shorter if shorter == plain or SIZED.search(shorter) else name


def network_of(group: str) -> Network:
    """Return the network of a measured group by its name: as it is, without a source's mark (``anl_Llama-2-7b-hf``) or
    without a publisher's (``meta-llama/Llama-2-7b-hf``); raises InputError where none is called so."""
    for name in (group, group.partition("_")[2], group.rpartition("/")[2]):
        try:
            return load_network(name)
        except InputError:
            continue
    near = accepted(group.rpartition("/")[2].lower(), networks(), 4)
    raise InputError(f"no network is called {group!r} ('dse show networks'); {near}")


def relative_to(name_or_path: str, folder: Path) -> str:
    """Return a network as :func:`load_network` takes it, its path relative to ``folder`` where it stands there."""
    path = folder / name_or_path
    is_path = path.suffix == ".json" or (_shipped(name_or_path) is None and there_is(path, Path.is_dir))
    return str(path) if is_path else name_or_path


def _config_path(name_or_path: str) -> Path | None:
    """The config.json that a name means, None for a shipped network or none at all."""
    path = Path(name_or_path)
    if path.suffix == ".json":
        return path
    return path / "config.json" if _key(name_or_path) not in _by_alias() and there_is(path, Path.is_dir) else None


def stated_types(name_or_path: str) -> StatedTypes:
    """Return what a network's name or its config.json says of its types."""
    path = _config_path(name_or_path)
    return types_of_name(name_or_path) if path is None else types_of_file(path)


def checkpoint_name(name_or_path: str) -> str:
    """Return the pair of types that a shipped network is published in, "" where that is 16 bits or a file's to say."""
    if _config_path(name_or_path) is not None:
        return ""
    name = load_network(name_or_path).name
    return next(row["checkpoint"] for row in read_table("networks/networks.csv") if row["network"] == name)


def checkpoint_precision(name_or_path: str) -> tuple[Precision | None, str]:
    """Return the types of a network's published checkpoint and how it calls them; None where no pair of types is that
    of all its weights, "" where it is not quantised."""
    path = _config_path(name_or_path)
    if path is None:
        published = checkpoint_name(name_or_path)
        return precision(name_or_path, published or "bf16"), published
    stated = types_of_file(path)
    if stated.method and not stated.settings:
        return None, stated.method
    return precision(str(path), **(stated.settings or {"dtype": wide_type(path)})), stated.method
