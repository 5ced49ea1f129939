"""JAX has an upper bound, since its interfaces for kernels are experimental; what is installed lies within."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:2]))


def test_the_installed_jax_is_one_that_is_tested() -> None:
    for name in ("jax", "jaxlib"):
        (wanted,) = [one for one in PROJECT["dependencies"] if re.match(rf"{name}\b", one)]
        low, high = (re.search(rf"{sign}([\d.]+)", wanted) for sign in (">=", "<(?!=)"))
        assert low and high
        assert numbers(low[1]) <= numbers(version(name)) < numbers(high[1])


def test_extras_for_gpus_take_jax_s_own() -> None:
    extras = PROJECT["optional-dependencies"]
    assert extras["cuda"] == ["jax[cuda12]"]
    assert "jax[cuda12-local]" in extras["gpu-aot"]
