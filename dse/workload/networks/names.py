"""How a network is named: by any name of a shipped one, or by the path of a Hugging Face ``config.json``."""

import re
from functools import cache
from pathlib import Path

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.workload.networks.huggingface import config_network, read_config, text_config
from dse.workload.networks.network import Network, networks


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
    found, path = _by_alias().get(_key(name_or_path)), _config_path(name_or_path)
    if path is not None:
        return config_network(path)
    if found is None:
        hint = accepted(name_or_path, networks())
        raise InputError(
            f"{where}: no network is called {name_or_path!r}; {hint} (or give the path of a Hugging Face config.json)"
        )
    return networks()[found]


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
    is_path = path.suffix == ".json" or (_key(name_or_path) not in _by_alias() and path.is_dir())
    return str(path) if is_path else name_or_path


def _config_path(name_or_path: str) -> Path | None:
    """The config.json that a name means, None for a shipped network or none at all."""
    path = Path(name_or_path)
    if path.suffix == ".json":
        return path
    return path / "config.json" if _key(name_or_path) not in _by_alias() and path.is_dir() else None


def stated_quantisation(name_or_path: str) -> str:
    """Return how a network's name or its config.json says that its weights are quantised, "" where neither does."""
    path = _config_path(name_or_path)
    if path is None:
        named = _QUANTISED.search(name_or_path)
        return named[0] if named else ""
    whole, beside = read_config(path), path.parent / "hf_quant_config.json"
    parts = {"": whole, "text_config: ": text_config(whole, path)}
    stated = {f"{part}{key}": config.get(key) for part, config in parts.items() for key in _QUANTISED_KEYS}
    if path.name == "config.json" and beside.is_file():
        stated[beside.name] = read_config(beside).get("quantization")
    for key, said in stated.items():
        if said and not isinstance(said, dict):
            raise InputError(f"{path}: {key} = {said!r} is not accepted; give an object with quant_method")
        if said:
            return _stated(said, key)
    return ""


def _stated(said: dict, key: str) -> str:
    method = said.get("quant_method") or said.get("quant_algo") or key
    return f"{method} of {said['bits']} bits" if "bits" in said else str(method)


_QUANTISED_KEYS = ("quantization_config", "compression_config")
"""Keys of a configuration under which its publisher says how weights are quantised."""

_QUANTISED = re.compile(r"nvfp4|mxfp4|fp8|int8|int4|w8a8|w4a16|awq|gptq", re.IGNORECASE)
"""Words of a network's name that say how its weights are quantised."""
