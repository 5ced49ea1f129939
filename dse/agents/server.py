"""The server of the Model Context Protocol: the tools over stdin and stdout, with bad input as a tool's error."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from dse import __version__
from dse.agents.tools import TOOLS
from dse.base.errors import DseError
from dse.base.extras import extra
from dse.base.kept.between_commands import cache_compilations

with extra("mcp", "dse mcp"):
    from mcp.server.mcpserver import MCPServer  # of version 2
    from mcp.server.mcpserver.exceptions import ToolError

INSTRUCTIONS = """Analytical models of GPUs running language models: how long, how many joules, what silicon, and why.
Times, watts and areas are predictions with intervals; tell a result's notes with its numbers. An error says what would
be accepted. A space states a base GPU, axes, workloads and objectives; ask check before sweep or search."""


def server() -> MCPServer[Any]:
    """Return a server with all tools."""
    made = MCPServer("dse", title="gpu-dse", instructions=INSTRUCTIONS, version=__version__)
    for tool in TOOLS:
        made.add_tool(_answering(tool), structured_output=True)
    return made


def serve() -> None:
    """Serve over stdin and stdout until the client leaves."""
    cache_compilations()
    server().run("stdio")


def _answering(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A tool whose errors of ours reach the agent as their sentence; the library keeps others' words from it."""

    @wraps(tool)
    def answer(*arguments: Any, **options: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **options)
        except (DseError, OSError) as error:
            raise ToolError(" ".join(str(error).split())) from None

    return answer
