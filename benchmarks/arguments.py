"""The command line of a benchmark: help from its module's text, `--json`, a refusal of what it does not know."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter


def parser(program: str, text: str | None) -> ArgumentParser:
    """Return the parser of ``python -m benchmarks.PROGRAM``, whose help is the module's text.

    Options are not guessed from their first letters. A word that is unknown ends the program with exit code 2.
    """
    made = ArgumentParser(
        f"python -m benchmarks.{program}",
        description=text,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--json", action="store_true", help="print one JSON document instead of a table")
    return made
