"""Readers meet what people and programs make of their files: each change is read, or answered by our error alone."""

import random
import traceback

import pytest

from dse.base.errors import InputError
from tests.hostile.mutations import mutated
from tests.hostile.seeds import SEEDS

SHAPES = "op,dtype,m,n,k,device\ngemm,bf16,1024,4096,4096,H100\ngemm,bf16,2048,4096,4096,H100\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "g.csv").write_text("m,n,k\n128,256,512\n")
    (tmp_path / "nsight.shapes.csv").write_text(SHAPES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.file)
def test_what_is_not_changed_is_read(folder, seed):
    path = folder / seed.file
    path.write_text(seed.text, encoding="utf-8")
    seed.read(path)


def answered(folder, count, number):
    """Read so many changed files, and return those that were answered by another error, each once a place."""
    draw, wrong = random.Random(number), {}
    for _ in range(count):
        seed = draw.choice(SEEDS)
        path = folder / seed.file
        content = mutated(seed.text, draw)
        path.write_bytes(content)
        try:
            seed.read(path)
        except InputError:
            continue
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            at = type(error).__name__, place.filename, place.lineno
            wrong.setdefault(at, (seed.file, str(error)[:200], content))
    return wrong


@pytest.mark.filterwarnings("ignore")
def test_changed_files_raise_our_error_alone(folder):
    assert not answered(folder, 300, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_twenty_thousand_changed_files_raise_our_error_alone(folder):
    assert not answered(folder, 20_000, 2)
