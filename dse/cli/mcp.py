"""Command that serves agents: mcp."""

from dse.cli.app import app


@app.command
def mcp() -> None:
    """Serve the tools check, run, compare, explain, sweep and search to an agent (Model Context Protocol, over stdio).

    An agent's client starts this command itself and talks to its stdin and stdout; docs/mcp.md shows how.
    """
    from dse.agents.server import serve

    serve()
