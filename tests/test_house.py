"""The bounds within which the code is built, and the counts themselves on small projects by hand."""

import pytest

from tests.house.counts import COUNTS, mirrored
from tests.house.imports import circles, closure, graph, running_back
from tests.house.project import Project


@pytest.fixture(scope="module")
def project() -> Project:
    """Return the working tree."""
    return Project.here()


NONE_OF = [
    *("full_rooms", "long_functions", "long_files", "circles", "circles_in_functions", "running_back"),
    *("unreachable_in_code", "unreachable_in_tests", "unreachable_in_tables", "unreachable_in_documents"),
]


@pytest.mark.parametrize("key", NONE_OF)
def test_there_is_none(project: Project, key: str) -> None:
    assert COUNTS[key].take(project) == []


def test_few_statements_keep_a_layout_of_their_own(project: Project) -> None:
    assert COUNTS["unformatted"](project) <= 60


def test_most_modules_have_a_test_of_their_name(project: Project) -> None:
    assert COUNTS["tested"](project) >= 0.8 * COUNTS["modules"](project)


def of(**files: str) -> Project:
    """Return a project of a few modules, ``timing__amali="import dse.power.power_limit"`` for dse/timing/amali.py."""
    return Project({f"dse/{name.replace('__', '/', 1)}.py": text for name, text in files.items()})


CIRCLE = of(a="from dse import b", b="def f():\n    from dse.c import d", c="import dse.a", d="import dse.a")


def test_imports_within_functions_close_a_circle_of_their_own() -> None:
    assert circles(graph(CIRCLE, inside_functions=False)) == []
    assert circles(graph(CIRCLE, inside_functions=True)) == ["dse.a <-> dse.b <-> dse.c"]


def test_a_closure_holds_its_start_and_what_is_reached() -> None:
    imports = graph(CIRCLE, inside_functions=False)
    assert closure(imports, {"dse.d"}) == {"dse.d", "dse.a", "dse.b"}


def test_relative_imports_and_those_for_type_checkers() -> None:
    only_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from dse.a import x\nfrom . import other"
    project = of(a="", room__one=only_types, room__other="from ..a import x")
    imports = graph(project, inside_functions=True)
    assert imports["dse.room.one"] == {"dse.room.other"}
    assert imports["dse.room.other"] == {"dse.a"}


def test_an_import_of_a_later_folder_runs_back() -> None:
    amali = "def f():\n    import dse.power.power_limit"
    project = of(power__power_limit="from dse.timing import amali", timing__amali=amali)
    project.texts["tests/test_import_direction.py"] = 'ORDER = ("timing", "power")'
    assert running_back(project) == ["dse.timing.amali imports dse.power.power_limit"]


@pytest.mark.parametrize(
    ("key", "text", "number"),
    [
        ("statements", "x = 1\ndef f():\n    return x", 3),
        ("number_constants", "A, B = 1, 'text'\nC = -2.0 * 3\nD: int = 4\nE = True\nF = (1, 2)\nG = ()\ng = len", 4),
        ("vmap", "import jax\nf = jax.vmap", 1),
        ("vmap", "'''Not with vmap.'''", 0),
        ("unformatted", "x = 1  # fmt: " + "skip\ny = 2  # skip", 1),
        ("median_function", "def f():\n    return 1\n\n@f\ndef g():\n    x = 1\n    return 2\n\nh = 1", 2.5),
        ("private_definitions", "class WhatIsHeld:\n    told: int\ndef f(within_ns, upheld): pass", 3),
        ("private_variables", "found = 1\nself.found = 2\nfoundation = found", 1),
    ],
)
def test_counts_by_hand(key: str, text: str, number: float) -> None:
    assert COUNTS[key](of(a=text)) == number


def test_evaluation_is_one_place_however_many_files_it_has() -> None:
    both = "def f(model: TimingModel, x):\n    return fastest(jax.vmap(model)(x))"
    one = "def f(model: TimingModel, x):\n    return jax.vmap(model)(x)"
    project = of(
        evaluate__a=both, evaluate__b=both, grid__a=both, grid__b=one, grid__c=both.replace("TimingModel", "T")
    )
    assert COUNTS["evaluating"].take(project) == ["dse/evaluate/", "dse/grid/a.py"]


def test_the_mirrored_a_module_lies_in_the_folder_of_its_own() -> None:
    assert mirrored("dse/units.py") == "tests/test_units.py"
    assert mirrored("dse/report/sweep/page.py") == "tests/report/sweep/test_page.py"


def test_an_unknown_revision_is_said_to_be_missing() -> None:
    with pytest.raises(LookupError, match="0123456789abcdef cannot be read"):
        Project.at("0123456789abcdef")
