"""Print the counts of the working tree beside those of another revision.

Run with ``python -m tests.house [--json] [--at REVISION] [--list COUNT]``; the last prints what a count counts.
"""

import argparse
import json
import sys

from tests.house.counts import COUNTS
from tests.house.project import Project

BEFORE = "635020d"
"""The revision that the counts are compared with: the last one before the rebuilding."""


def main() -> None:
    """Print a line a count, or one JSON document."""
    arguments = _arguments()
    here = Project.here()
    if arguments.list:
        print(*_items(here, arguments.list), sep="\n")
        return
    numbers = {"here": {key: count(here) for key, count in COUNTS.items()}}
    try:
        before = Project.at(arguments.at)
        numbers[arguments.at] = {key: count(before) for key, count in COUNTS.items()}
    except LookupError as error:
        print(f"only the working tree: {error}", file=sys.stderr)
    if arguments.json:
        print(json.dumps({"rules": {key: count.rule for key, count in COUNTS.items()}, "counts": numbers}, indent=2))
        return
    print(*(f"{name:>9}" for name in numbers), "", sep="  ")
    for key, count in COUNTS.items():
        print(*(f"{found[key]:>9g}" for found in numbers.values()), f"{count.title} ({count.rule})", sep="  ")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--at", default=BEFORE, metavar="REVISION", help=f"compare with this one (default: {BEFORE})")
    parser.add_argument("--list", choices=COUNTS, metavar="COUNT", help=f"print what one of {', '.join(COUNTS)} counts")
    return parser.parse_args()


def _items(project: Project, key: str) -> list[str]:
    found = COUNTS[key].take(project)
    return found if isinstance(found, list) else [f"{found:g}"]


if __name__ == "__main__":
    main()
