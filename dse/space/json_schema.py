"""JSON Schemas of the TOML files that users write, from the attribute tables: editors complete and check by them.

They say what a file may hold, key by key. What follows from several keys together ``dse check`` says.
"""

from collections.abc import Mapping
from typing import Any

from dse.base.errors import expect_one_of
from dse.hardware.cost import YIELD_MODELS
from dse.hardware.data_types import data_types
from dse.hardware.own_memory import memory_keys
from dse.hardware.presets import preset_names
from dse.hardware.prices import PRICE_KEYS
from dse.hardware.process import memory_names
from dse.hardware.schema import Attribute, gpu_schema
from dse.space.metrics import DESIGN_METRICS, PRICED_METRICS, WORKLOAD_METRICS
from dse.timing.models import TIMING_MODELS
from dse.workload.counts import LARGEST
from dse.workload.networks.degrees import MOST_GPUS
from dse.workload.networks.network import networks
from dse.workload.parse import KEYS, PHASES

DIALECT = "https://json-schema.org/draft/2020-12/schema"

COUNTS = ("batch", "prompt", "prefix", "context", "output", "images", "audio", "tp", "dp", "ep")
"""Keys of a workload that are whole numbers."""

Schema = dict[str, Any]


def json_schema(kind: str) -> Schema:
    """Return the JSON Schema of a file of a ``kind``: space, gpu or workload; raises InputError."""
    expect_one_of("schema", kind, KINDS)
    return {"$schema": DIALECT, "title": f"A {kind} of gpu-dse"} | KINDS[kind]()


def _gpu() -> Schema:
    own = {
        "name": _text("title of the GPU"),
        "base": _named("GPU that the file starts from", preset_names()),
        "peaks": {
            "type": "object",
            "description": "dense TFLOPS of the data sheet by data type, checked against the attributes",
            "properties": {name: {"type": "number", "exclusiveMinimum": 0} for name in data_types()},
        },
        "memory": _memory(),
        **_prices(),
    }
    return _table("a GPU: a base and what differs, or every attribute", own | _attributes())


def _memory() -> Schema:
    keys = {
        name: {
            "type": "number",
            "minimum": key.low,
            "maximum": key.high,
            "description": f"{key.description} [{key.unit}]",
        }
        for name, key in memory_keys().items()
    }
    types = {"enum": memory_names(), "description": "memory type whose numbers stand for those that are not stated"}
    return _table("a memory of one's own", {"type": types} | keys)


def _prices() -> Schema:
    price: Schema = {"type": "number", "exclusiveMinimum": 0}
    meanings = ("price of the GPU's hour [USD]", "price of the board [USD], shared out over its hours")
    return {key: price | {"description": text} for key, text in zip(PRICE_KEYS, meanings, strict=True)}


def _workload() -> Schema:
    settings: Schema = {key: {"type": ["string", "integer"], "description": text} for key, text in KEYS.items()}
    settings |= {key: _count(KEYS[key], MOST_GPUS if key == "tp" else LARGEST) for key in COUNTS}
    settings["phase"] = {"enum": list(PHASES), "description": KEYS["phase"]}
    network = _named("a network ('dse show networks'), or the path of a Hugging Face config.json", sorted(networks()))
    return _table("a workload: a network and its settings", {"network": network} | settings, ["network"])


def _space() -> Schema:
    attributes, schema = _attributes(), gpu_schema()
    entry = {"type": "object", "properties": {"use": _text("the workload"), "weight": {"type": "number", "minimum": 0}}}
    metrics = [*DESIGN_METRICS, *(f"WORKLOAD.{name}" for name in (WORKLOAD_METRICS | PRICED_METRICS))]
    objective = {
        "value": _text(f"expression over attributes and results: {', '.join(metrics)}"),
        "goal": {"enum": ["min", "max", "minimize", "maximize"]},
        "name": _text("what the objective is called"),
        "unit": _text("unit of a composed expression"),
    }
    links = {name: _text(f"expression that {name} follows, as '2 * sm_count'") for name in schema}
    axes = {name: _axis(schema[name], attributes) for name in schema}
    base = _named("GPU to start from, or the path of a GPU TOML", preset_names())
    bases = {"type": "array", "items": base, "minItems": 1, "uniqueItems": True}
    values: Schema = {"type": ["array", "object", "integer", "string"]}
    settings = _table("values of a workload's settings", {key: values | {"description": KEYS[key]} for key in KEYS})
    quoted = {f"^[^.]+\\.({'|'.join(KEYS)})$": values | {"description": "values of a setting, as decode.batch"}}
    return _table(
        "a space of designs",
        {
            "name": _text("name of the space"),
            "question": _text("what is asked, in a sentence"),
            "base": {"anyOf": [base, bases]},
            "gpu": _table("attributes in place of the base's", attributes | _prices() | {"memory": _memory()}),
            "axes": _table("values that attributes take", axes | {"base": bases})
            | {"minProperties": 1, "patternProperties": quoted, "additionalProperties": settings},
            "links": _table("attributes that follow others", links),
            "constraints": {"type": "array", "items": _text("condition, as 'die_mm2 <= 814'")},
            "workloads": {
                "type": "object",
                "description": "name -> what runs",
                "minProperties": 1,
                "additionalProperties": {"anyOf": [_text("the workload"), entry | {"additionalProperties": False}]},
            },
            "objectives": {
                "type": "array",
                "minItems": 1,
                "items": _table("an objective", objective, ["value", "goal"]),
            },
            "timing": {"anyOf": [{"enum": list(TIMING_MODELS)}, {"type": "object"}], "description": "timing model"},
            "power": {"anyOf": [_text("power model"), {"type": "object"}], "description": "power model"},
            "yield_model": {"enum": list(YIELD_MODELS), "description": "how the yield of dies is counted"},
        },
        ["axes", "workloads", "objectives"],
    )


KINDS = {"space": _space, "gpu": _gpu, "workload": _workload}
"""Kinds of files."""


def _attributes() -> Schema:
    return {name: _attribute(attr) for name, attr in gpu_schema().items()}


def _attribute(attr: Attribute) -> Schema:
    unit = "" if attr.unit == "1" else f" [{attr.unit}]"
    said: Schema = {"description": attr.description + unit}
    if attr.default is not None:
        said["default"] = attr.decode(attr.default)
    if attr.choices:
        return said | {"enum": list(attr.choices)}
    if attr.type == "bool":
        return said | {"type": "boolean"}
    kind = "integer" if attr.type == "int" else "number"
    return said | {"type": kind, "minimum": attr.low, "maximum": attr.high}


def _axis(attr: Attribute, attributes: Mapping[str, Schema]) -> Schema:
    """One value, a list of values, or a range of numbers."""
    one = {key: value for key, value in attributes[attr.name].items() if key not in ("default", "description")}
    forms: list[Schema] = [one, {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}]
    if not attr.choices and attr.type != "bool":
        number = {"type": "number"}
        ends = {"from": number, "to": number, "step": number, "count": {"type": "integer", "minimum": 2}}
        scale = {"scale": {"enum": ["linear", "log"]}}
        forms.append(_table("a range", ends | scale, ["from", "to"]))
    return {"description": attributes[attr.name]["description"], "anyOf": forms}


def _table(description: str, properties: Mapping[str, Any], required: list[str] | None = None) -> Schema:
    found: Schema = {"type": "object", "description": description, "properties": dict(properties)}
    return found | {"additionalProperties": False} | ({"required": required} if required else {})


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _named(description: str, names: list[str]) -> Schema:
    """A text, of which editors propose ``names``."""
    return {"type": "string", "description": description, "examples": names}


def _count(description: str, most: int) -> Schema:
    """A whole number, or its digits."""
    number = {"type": "integer", "minimum": 1, "maximum": most}
    return {"anyOf": [number, {"type": "string", "pattern": "^[0-9]+$"}], "description": description}
