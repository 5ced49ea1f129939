"""What an installation takes: the packages of the main job alone, by name."""

import pytest

from benchmarks.start import _name, installed


@pytest.mark.parametrize(
    ("requirement", "name"),
    [
        ("numpy>=2", "numpy"),
        ("jaxlib<0.13,>=0.10", "jaxlib"),
        ("optuna>=5; extra == 'search'", ""),
        ("tzdata; sys_platform == 'win32'", "tzdata"),
    ],
)
def test_names_of_requirements(requirement: str, name: str) -> None:
    assert _name(requirement) == name


def test_packages_of_the_main_job_are_weighed() -> None:
    sizes = installed()
    if "jax" not in sizes:
        pytest.skip("the package is not installed, only on the path")
    assert list(sizes.values()) == sorted(sizes.values(), reverse=True)
    assert sizes["jaxlib"] > 100
