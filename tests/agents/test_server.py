"""The tools as an agent's client meets them: the protocol's own client, in this process and at the command's pipes."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="pip install 'gpu-dse[mcp]'")

from mcp import StdioServerParameters
from mcp.client.client import Client

from dse.agents.server import server

DECODE = "llama3_8b:phase=decode,batch=8,context=1024"

SPACE = """
base = "h100_sxm"
timing = "roofline"
[axes]
sm_count = [120, 132, 144]
l2_mib = [40, 50]
[workloads]
decode = "llama3_8b:phase=decode,batch=8,context=1024"
[[objectives]]
value = "decode.tbt_ms"
goal = "min"
[[objectives]]
value = "die_mm2"
goal = "min"
"""


def ask(tool: str, **arguments: Any) -> Any:
    """Return what a client in this process is answered."""

    async def asked() -> Any:
        async with Client(server()) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(asked())


def answer(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the document of an answer, which its text holds too."""
    result = ask(tool, **arguments)
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def refused(tool: str, **arguments: Any) -> str:
    """Return the sentence of a refusal."""
    result = ask(tool, **arguments)
    assert result.is_error
    return result.content[0].text


def test_tools_have_descriptions_and_schemas() -> None:
    async def listed() -> list[Any]:
        async with Client(server()) as client:
            return (await client.list_tools()).tools

    found = {tool.name: tool for tool in asyncio.run(listed())}
    assert set(found) == {"check", "run", "compare", "explain", "sweep", "search"}
    for tool in found.values():
        assert tool.description and tool.input_schema["required"]
        for name, schema in tool.input_schema["properties"].items():
            assert schema["description"], (tool.name, name)
    assert found["search"].input_schema["properties"]["evaluations"]["minimum"] == 1


def test_run_and_compare_answer_as_the_commands_do() -> None:
    ran = answer("run", gpu="h100_sxm", workload=DECODE)
    assert ran["notes"] and ran["metrics"]
    compared = answer("compare", gpus=["h100_sxm", "h200"], workload=DECODE)
    assert {row["gpu"] for row in compared["rows"]} == {"h100_sxm", "h200"}


def test_a_small_space_is_checked_swept_and_searched() -> None:
    assert answer("check", space=SPACE)["n"] == 6
    swept = answer("sweep", space=SPACE)
    assert swept["n"] == 6 and swept["n_pareto"] == len(swept["pareto"]) and swept["verdicts"]
    assert answer("search", space=SPACE, evaluations=6)["pareto"]


def test_bases_and_settings_are_axes_of_a_space_as_others_are() -> None:
    varied = SPACE.replace('base = "h100_sxm"', 'base = ["h100_sxm", "h200"]')
    assert varied != SPACE
    swept = answer("sweep", space=varied)
    assert swept["n"] == 12 and {row["base"] for row in swept["pareto"]} <= {"h100_sxm", "h200"}


@pytest.mark.slow
def test_explain_tells_few_entries() -> None:
    told = answer("explain", gpu="h100_sxm", workload=DECODE, top=3)
    assert len(told["sentences"]) <= 3
    assert answer("explain", gpu="h100_sxm", workload=DECODE, against="h200")["sentences"]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("sweep", {"space": "h100_tensor_core"}, "designs are too many for a tool call, which sweeps at most 20,000"),
        ("search", {"space": SPACE, "evaluations": 10**6}, "give at most 20,000"),
        ("run", {"gpu": "h1000", "workload": DECODE}, "h1000"),
        ("run", {"gpu": "h100_sxm", "workload": "llama3_8b:phase=train"}, "phase=train"),
        ("check", {"space": "base = "}, "is not valid TOML"),
        ("check", {"space": "base = 'h100_sxm'"}, "axes"),
        ("compare", {"gpus": ["h200", "b200"], "workload": DECODE, "axis": "batch"}, "give axis and values together"),
        ("search", {"space": SPACE, "evaluations": 0}, "greater than or equal to 1"),
    ],
)
def test_bad_input_is_an_error_of_the_tool_with_our_sentence(tool: str, arguments: Any, sentence: str) -> None:
    told = refused(tool, **arguments)
    assert sentence in told and "Traceback" not in told


@pytest.mark.slow
def test_the_command_speaks_the_protocol_at_its_pipes() -> None:
    root = str(Path(__file__).parents[2])
    start = StdioServerParameters(command=sys.executable, args=["-m", "dse", "mcp"], cwd=root)

    async def asked() -> Any:
        async with Client(start) as client:
            named = client.server_info
            assert named is not None and named.name == "dse"
            return await client.call_tool("run", {"gpu": "h100_sxm", "workload": DECODE})

    assert not asyncio.run(asked()).is_error
