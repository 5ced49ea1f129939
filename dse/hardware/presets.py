"""GPU sheets: every attribute of a GPU with its source, from the shipped tables or from a user's TOML."""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from math import isclose, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dse.base.errors import InputError, expect, shown
from dse.base.package_tables import read_table
from dse.base.text_file import printable, there_is
from dse.base.toml_file import read_toml
from dse.hardware.data_types import tensor_rates
from dse.hardware.own_memory import TABLE, own_memory
from dse.hardware.peak import refuse_contradictions
from dse.hardware.prices import HourlyPrice, assumed_price, hourly_prices, stated_price
from dse.hardware.schema import Attribute, attribute, gpu_schema, overfull, uneven, unlinked

if TYPE_CHECKING:
    from dse.hardware.gpu import Gpu


OTHER_FILES = (".json", ".yaml", ".yml", ".config", ".cfg", ".csv")
"""Ends of files in which other tools describe a GPU."""


@dataclass(frozen=True)
class Entry:
    """One value of a sheet: its number (choices encoded), where it comes from, and how sure that is.

    ``status`` is ``sheet``, ``measured``, ``derived``, ``assumed``, ``default`` or ``user``.
    """

    attribute: Attribute
    number: float
    source: str
    status: str
    note: str = ""

    @property
    def value(self) -> object:
        """The value as a person would write it."""
        return self.attribute.decode(self.number)


@dataclass(frozen=True)
class GpuSheet:
    """A GPU with the source of every value; ``base``: the preset that it was made from, "" where from none; ``price``:
    of an hour, where its own file states one."""

    name: str
    title: str
    entries: dict[str, Entry]
    base: str = ""
    price: HourlyPrice | None = None

    def __repr__(self) -> str:
        of = f", from {self.base}" if self.base else ""
        return f"GpuSheet({self.name!r}: {self.title}{of}, {len(self.entries)} attributes)"

    def numbers(self) -> dict[str, float]:
        """Return attribute -> number."""
        return {name: entry.number for name, entry in self.entries.items()}

    def tensor_types(self) -> list[str]:
        """Return the data types that its tensor cores compute in."""
        numbers = self.numbers()
        return [dtype for dtype, rate in tensor_rates(numbers).items() if rate and numbers["tensor_cores_per_sm"]]

    @property
    def hourly_price(self) -> HourlyPrice:
        """The price of its hour [USD]: as its file states it, as a list has it, or else assumed."""
        listed = hourly_prices()
        if found := self.price or listed.get(self.name):
            return found
        if of_base := listed.get(self.base):
            return HourlyPrice(of_base.usd, f"assumed: that of its base, {of_base.list}", True)
        bandwidths = {name: preset_numbers(name)["dram_bandwidth_gbs"] for name in listed}
        return assumed_price(self.numbers()["dram_bandwidth_gbs"], bandwidths)

    def record(self) -> "Gpu":
        """Return the :class:`~dse.hardware.gpu.Gpu` that the models compute with."""
        from dse.hardware.gpu import Gpu

        return Gpu.from_numbers(self.numbers())


@cache
def gpu_index() -> dict[str, dict[str, str]]:
    """Return preset -> its row of ``data/gpus/index.csv`` (name, vendor, chip, die, aliases, source ...)."""
    return {row["preset"]: row for row in read_table("gpus/index.csv")}


def preset_names() -> list[str]:
    """Return the GPUs that can be evaluated, in the order of the index."""
    return [name for name, row in gpu_index().items() if row["supported"] == "1"]


def _key(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).lower()


@cache
def _by_alias() -> dict[str, str]:
    return {
        _key(alias): preset
        for preset, row in gpu_index().items()
        for alias in (preset, row["name"], *filter(None, row["aliases"].split(";")))
    }


def find_preset(name: str) -> str | None:
    """Return the preset that ``name`` (a preset, market, NVML or data-set name) means, or None."""
    return _by_alias().get(_key(name))


def begins(name: str, start: str) -> bool:
    """Return whether any name of the GPU that ``name`` means (or ``name``, where it means none) begins with
    ``start``."""
    row = gpu_index().get(find_preset(name) or "")
    names = (name, row["preset"], row["name"], *row["aliases"].split(";")) if row else (name,)
    return any(_key(one).startswith(_key(start)) for one in names)


def resolve(name: str, where: str = "GPU") -> str:
    """Return the preset that ``name`` means; raises InputError when there is none or it cannot be evaluated."""
    preset = find_preset(name)
    if len(cards := sharing(name)) > 1:
        told = ", ".join(f"{card} ({gpu_index()[card]['name']})" for card in cards)
        raise InputError(f"{where}: {shown(name)} names several cards; give one of {told}")
    if preset is None:
        raise InputError(f"{where}: no GPU is called {shown(name)}; {_nearest(name)} (see 'dse show gpus')")
    row = gpu_index()[preset]
    if row["supported"] != "1":
        raise InputError(f"{where}: {row['name']} cannot be evaluated: {row['note']}")
    return preset


_VENDOR_WORDS = {"nvidia", "amd", "geforce", "tesla", "quadro", "instinct", "hbm3", "hbm3e", "hbm2e"}
_SOCKET = re.compile(r"(?<=sxm)\d")


def _words(name: str) -> list[str]:
    """The words of a GPU's name without its maker's: "NVIDIA A100-SXM4-40GB" is a100, sxm, 40gb."""
    return [
        _SOCKET.sub("", word) for word in re.split(r"[-_\s()]+", name.lower()) if word and word not in _VENDOR_WORDS
    ]


def sharing(name: str) -> list[str]:
    """Return the presets that a market name stands for: several where it is the beginning of them all ("A100")."""
    if _key(name) in map(_key, gpu_index()):
        return [str(find_preset(name))]
    words = _words(name)
    own = [preset for preset in preset_names() if words and _words(preset) == words]
    return own or [preset for preset in preset_names() if words and _words(preset)[: len(words)] == words]


def _nearest(name: str) -> str:
    """The end of a sentence about a name that is no GPU's: presets whose names or titles are near."""
    words = set(_words(name))
    shared = {preset: _in_common(words, preset) for preset in preset_names()}
    most = max(shared.values(), default=0.0)
    near = [preset for preset in preset_names() if most and shared[preset] == most][:3]
    titles = {_key(alias): preset for alias, preset in _by_alias().items()}
    keys = (_key(name), _key(name).replace("o", "0"))  # b2oo is b200
    spelt = [titles[near] for key in keys for near in get_close_matches(key, titles, n=3, cutoff=0.75)]
    found = list(dict.fromkeys(near or spelt))[:3]
    if not found:
        return f"give one of {len(preset_names())} presets or the path of a GPU TOML"
    return f"did you mean {' or '.join(f'{preset!r}' for preset in found)}?"


def _in_common(words: set[str], preset: str) -> float:
    """Words that a name shares with a preset's names, the longer of which say more; those of numbers decide."""
    row = gpu_index()[preset]
    theirs = {word for text in (preset, row["name"], row["aliases"].replace(";", " ")) for word in _words(text)}
    both = {word for word in words & theirs if any(c.isdigit() for c in word) and not word.endswith("gb")}
    return len(both) + 0.1 * len(words & theirs) if both else 0.0


@cache
def preset_sheet(preset: str) -> GpuSheet:
    """Return the sheet of a shipped GPU; an attribute that its table leaves out has the schema's default."""
    where = f"dse/data/gpus/{preset}.csv"
    rows = {row["attribute"]: row for row in read_table(f"gpus/{preset}.csv")}
    entries = {}
    for name, attr in gpu_schema().items():
        row = rows.pop(name, None)
        if row is None:
            entries[name] = _default_entry(attr, where)
        else:
            number = attr.encode(_parse(attr, row["value"]), where)
            entries[name] = Entry(attr, number, row["source"], row["status"], row["note"])
    if rows:
        raise InputError(f"{where}: {next(iter(rows))!r} is not an attribute of a GPU")
    return GpuSheet(preset, gpu_index()[preset]["name"], entries)


def _parse(attr: Attribute, text: str) -> object:
    return text if attr.choices else float(text)


def _default_entry(attr: Attribute, where: str) -> Entry:
    if attr.default is None:
        raise InputError(f"{where}: {attr.name} is missing; give {attr.range_text} ({attr.description})")
    return Entry(attr, attr.default, attr.source, "default")


def preset_numbers(name: str) -> Mapping[str, float]:
    """Return the attributes of a preset as numbers."""
    return preset_sheet(name).numbers()


def gpu_from_mapping(content: dict, where: str, name: str) -> GpuSheet:
    """Return the sheet that a mapping describes: ``base`` (a preset) and what differs, or every required attribute.

    An optional table ``peaks`` (data type -> dense TFLOPS of the data sheet) is checked against the attributes; a table
    ``memory`` stands for attributes of its memory (:func:`dse.hardware.own_memory.own_memory`).
    """
    content = dict(content)
    title = content.pop("name", None)
    base = content.pop("base", None)
    if base is not None and not isinstance(base, str):
        raise InputError(f'{where}: base = {base!r} is not accepted; give the name of a GPU, as base = "h100_sxm"')
    if title is not None and not isinstance(title, str):
        raise InputError(f"{where}: name = {shown(title)} is not accepted; give a text")
    title = None if title is None else printable(title)
    if base is not None:
        if Path(base).suffix == ".toml":
            raise InputError(
                f"{where}: base = {base!r} is a GPU TOML; give a preset ('dse show gpus') and what differs"
            )
        sheet = changed(preset_sheet(resolve(base, f"{where}: base")), content, where)
        return replace(sheet, name=name, title=title or sheet.title, base=sheet.name)
    peaks, price = content.pop("peaks", {}), stated_price(content, where)
    given = _given(content, {}, where)
    missing = [key for key, attr in gpu_schema().items() if attr.default is None and key not in given]
    if len(missing) > len(given):
        raise InputError(
            f"{where}: there is no base, and {len(missing)} attributes are missing ({', '.join(missing[:3])} ...); "
            "give base = \"h100_sxm\" (or another name of 'dse show gpus') and what differs, or all attributes"
        )
    entries = {key: given.get(key) or _default_entry(attr, where) for key, attr in gpu_schema().items()}
    return _consistent(GpuSheet(name, title or name, entries, price=price), peaks, where)


def changed(sheet: GpuSheet, content: dict, where: str) -> GpuSheet:
    """Return a sheet with the attributes of ``content``, and its price, in place of its own, checked against a table
    ``peaks``."""
    content = dict(content)
    peaks, price = content.pop("peaks", {}), stated_price(content, where) or sheet.price
    given = _given(content, sheet.entries, where)
    title = f"{sheet.title}, changed" if given else sheet.title
    sheet = replace(sheet, title=title, entries=sheet.entries | given, price=price)
    return _consistent(sheet, peaks, where)


def _consistent(sheet: GpuSheet, peaks: object, where: str) -> GpuSheet:
    """Return a sheet whose attributes agree with each other and with the ``peaks`` of a file; raises InputError."""
    numbers = sheet.numbers()
    shared, l1 = numbers["shared_memory_kib"], numbers["l1_kib"]
    if overfull(numbers):
        raise InputError(
            f"{where}: shared_memory_kib = {shared:g} is more than l1_kib = {l1:g}, which holds it too; give at most "
            f"{l1:g}, or a larger l1_kib"
        )
    _refuse_dies(numbers, where)
    refuse_contradictions(peaks, numbers, where)
    return sheet


def _refuse_dies(numbers: Mapping[str, float], where: str) -> None:
    dies, sms = numbers["dies"], numbers["sm_count"]
    if unlinked(numbers):
        raise InputError(
            f"{where}: dies = {dies:g} and die_link_gbs = 0: nothing joins the dies; give the bandwidth of a "
            "die's link to the others in one direction, as die_link_gbs = 5000"
        )
    if uneven(numbers):
        raise InputError(
            f"{where}: dies = {dies:g} cannot share sm_count = {sms:g} equally; give a multiple of {dies:g} SMs, or "
            "other dies"
        )


def _given(content: dict, base: Mapping[str, Entry], where: str) -> dict[str, Entry]:
    """The attributes that a mapping states, itself or by its table of a memory, on a ``base``."""
    content = dict(content)
    memory = content.pop(TABLE, None)
    attributes = {key: attribute(key, where) for key in content}
    given = {key: Entry(attr, attr.encode(content[key], where), where, "user") for key, attr in attributes.items()}
    if memory is None:
        return given
    others = {name: entry.value for name, entry in ({**base} | given).items()}
    found = own_memory(memory, others, where)
    for name in given.keys() & {name for name, one in found.items() if one.status == "user"}:
        if found[name].value != others[name]:
            raise InputError(f"{where}: {name} is stated, and follows from [{TABLE}] too; give one of the two")
    said = {name: gpu_schema()[name] for name in found}
    entries = {
        name: Entry(attr, attr.encode(found[name].value, f"{where}: [{TABLE}]"), found[name].source, found[name].status)
        for name, attr in said.items()
    }
    return entries | given


def load_sheet(name_or_path: str | Path, where: str = "GPU") -> GpuSheet:
    """Return the sheet of a preset (by any of its names) or of a GPU TOML file; raises InputError.

    ``where`` opens the sentence about a name that means no GPU.
    """
    expect(where, name_or_path, (str, os.PathLike), "give the name of a GPU, as 'h100_sxm', or the path of a GPU TOML")
    if not str(name_or_path).strip():
        raise InputError(f"{where}: its name is empty; give one of 'dse show gpus', as h100_sxm, or a GPU TOML's path")
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return gpu_from_mapping(read_toml(path), str(path), path.stem)
    if find_preset(str(name_or_path)) is None and (there_is(path) or path.suffix in OTHER_FILES):
        raise InputError(
            f'{where}: {repr(str(path))[1:-1]} is no GPU TOML; give base = "h100_sxm" (or another name of \'dse show '
            f"gpus') and what differs in a file that ends in .toml, or 'dse import' for a file of LLMCompass"
        )
    return preset_sheet(resolve(str(name_or_path), where))


ROUNDING = 1e-5
"""Relative difference of a number that was written with fewer digits: the GPU is still the preset."""


def sheet_of(gpu: "str | Path | Gpu | GpuSheet", where: str = "GPU") -> GpuSheet:
    """Return the sheet of a name, a path, or the record of one GPU; raises InputError.

    A record with a preset's numbers has its sheet, with its sources and its calibration.
    """
    if isinstance(gpu, GpuSheet):
        return gpu
    if isinstance(gpu, str | Path):
        return load_sheet(gpu, where)
    if not callable(getattr(gpu, "attributes", None)):
        raise InputError(f"{where} = {shown(gpu)} is not accepted; give a name, a path, or the record of a GPU")
    numbers = {name: _of_record(gpu_schema()[name], value, where) for name, value in gpu.attributes().items()}
    entries = {name: Entry(gpu_schema()[name], value, "a record", "user") for name, value in numbers.items()}
    sheet = _consistent(GpuSheet("record", "GPU of a record", entries), {}, where)
    same = (preset_sheet(name) for name in preset_names() if alike(sheet, preset_sheet(name)))
    return next(same, sheet)


def _of_record(attr: Attribute, value: Any, where: str) -> float:
    """Return an attribute of a record as a number; raises InputError where it is none, or none of one GPU.

    It may be a fraction where a sheet has a whole number (a scale model's SMs), but of no choice.
    """
    if shape := getattr(value, "shape", ()):
        raise InputError(f"{where}: {attr.name} has the shape {tuple(shape)}; give the record of one GPU: scalars")
    try:
        number = nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError):
        number = nan
    slack = ROUNDING * max(abs(attr.low), abs(attr.high))
    within = attr.low - slack <= number <= attr.high + slack  # not nan
    if not within or ((attr.choices or attr.type == "bool") and number != int(number)):
        text = shown(value) if isnan(number) else f"{number:g}"
        raise InputError(f"{where}: {attr.name} = {text} is not accepted; give {attr.record_text}")
    return number


def alike(sheet: GpuSheet, other: GpuSheet, but: Collection[str] = ()) -> bool:
    """Return whether two GPUs have the same numbers, but for rounding and the attributes ``but``."""
    theirs = other.numbers()
    mine = ((name, value) for name, value in sheet.numbers().items() if name not in but)
    return all(isclose(value, theirs[name], rel_tol=ROUNDING) for name, value in mine)


def load_gpu(name_or_path: str | Path) -> "Gpu":
    """Return the record of a preset (by any of its names) or of a GPU TOML file; raises InputError."""
    return load_sheet(name_or_path).record()
