"""The last line of a test run: what did not run, and how to make it run. conftest.py registers it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

SLOW = pytest.StashKey[int]()
"""Slow tests that were left out."""


def line(reasons: Counter[str], slow: int) -> str:
    """Return the line, "" where all ran; ``reasons``: why tests were skipped, each with its remedy -> how many."""
    parts = [f"{count}: {reason}" for reason, count in reasons.most_common()]
    parts += [f"{slow} slow ones: pytest -m slow"] if slow else []
    return "not run: " + "; ".join(parts) if parts else ""


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the slow tests that a run leaves out."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.config.stash[SLOW] = item.config.stash.get(SLOW, 0) + 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker tells how many it left out: all of a session collect the same tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["slow"] = session.config.stash.get(SLOW, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """The session learns it from any worker that did not crash."""
    node.config.stash[SLOW] = getattr(node, "workeroutput", {}).get("slow", node.config.stash.get(SLOW, 0))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the line."""
    reports = terminalreporter.getreports("skipped")
    reasons = Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)
    found = line(reasons, terminalreporter.config.stash.get(SLOW, 0))
    if found:
        terminalreporter.write_line(found)
