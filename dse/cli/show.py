"""Commands that print what is shipped."""

from rich.console import Console

from dse.cli.app import Json, show


@show.command(name="gpus")
def show_gpus(*, json_: Json = False) -> None:
    """List the GPUs with their names."""
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_gpus(Console(), json_)


@show.command(name="gpu")
def show_gpu(name: str, /, *, json_: Json = False) -> None:
    """Print a GPU: every attribute with unit, source and how sure it is, and its peaks.

    Parameters
    ----------
    name:
        Name of a GPU, any of its aliases, or the path of a GPU TOML.
    """
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_gpu(name, Console(), json_)


@show.command(name="schema")
def show_schema(*, json_: Json = False) -> None:
    """Print the attributes of a GPU: unit, range, default and meaning. Each can be an axis."""
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_schema(Console(), json_)


@show.command(name="columns")
def show_columns(*, json_: Json = False) -> None:
    """Print the columns of a measured table: unit, operators, meaning, and which of their values are modelled."""
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_columns(Console(), json_)


@show.command(name="networks")
def show_networks(*, json_: Json = False) -> None:
    """List the language models and their shapes."""
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_networks(Console(), json_)


@show.command(name="network")
def show_network(name: str, /, *, json_: Json = False) -> None:
    """Print a network: kinds of layers, parameters, bytes that a token and a request keep, types of the checkpoint.

    Parameters
    ----------
    name:
        Name of a network, any of its aliases, or the path of a Hugging Face config.json or its folder.
    """
    from dse.reports.show import network as network_show

    network_show.print_network(name, Console(), json_)


@show.command(name="engines")
def show_engines(*, json_: Json = False) -> None:
    """List the serving engines and what their hosts add to a step: the values of a workload's key engine."""
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_engines(Console(), json_)


@show.command(name="spaces")
def show_spaces(*, json_: Json = False) -> None:
    """List the shipped spaces and their questions."""
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_spaces(Console(), json_)


@show.command(name="metrics")
def show_metrics(*, json_: Json = False) -> None:
    """Print what objectives and constraints can name beside attributes."""
    from dse.reports.show import terminal as terminal_show

    terminal_show.print_metrics(Console(), json_)
