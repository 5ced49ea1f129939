"""A folder that shares its name with a public function is shown as that function, whoever looks."""

import inspect
import pydoc

import pytest

import dse
from dse.search.search import search
from dse.sweep.sweep import sweep

FOLDERS = [(dse.search, search), (dse.sweep, sweep)]


@pytest.mark.parametrize(("folder", "function"), FOLDERS, ids=["search", "sweep"])
def test_a_folder_has_the_signature_of_its_function(folder, function):
    assert inspect.signature(folder) == inspect.signature(function)


@pytest.mark.parametrize(("folder", "function"), FOLDERS, ids=["search", "sweep"])
def test_help_says_what_the_function_does_and_how_it_is_called(folder, function):
    name, first = function.__name__, function.__doc__.partition("\n")[0]
    shown = pydoc.render_doc(folder, renderer=pydoc.plaintext)
    assert f"dse.{name} - {first}" in shown
    assert f"dse.{name}(space, out=None, " in shown
    assert "Raises InputError." in shown


def test_a_folder_still_holds_its_modules():
    assert dse.sweep.sweep.sweep is sweep
    assert dse.sweep.pareto.pareto_mask is dse.pareto_mask
    assert dse.search.search.search is search
