"""Command that makes a GPU TOML of another tool's description: import."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dse.base.errors import InputError
from dse.cli.app import Json, app, made, print_json


@app.command(name="import")
def import_(
    description: Path,
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["-o", "--out"])] = None,
    base: str = "a100_sxm_80gb",
    json_: Json = False,
) -> None:
    """Make a GPU TOML of a hardware description of LLMCompass (JSON), and print its peaks.

    Parameters
    ----------
    description:
        JSON file, as LLMCompass's configs/GA100.json.
    out:
        GPU TOML to write, by default NAME.toml here; it must not exist.
    base:
        GPU that gives what the description does not say ('dse show gpus').
    """
    from dse.base.atomic_files import write_whole
    from dse.hardware.llmcompass import imported_gpu
    from dse.hardware.own_guards import own_gpu_notes

    sheet, text = imported_gpu(description, base)
    path = out or Path(f"{description.stem}.toml")
    if path.exists():
        raise InputError(f"{path}: exists already; give another name with -o")
    write_whole(made(path), text)
    if json_:
        print_json({"gpu": str(path), "notes": own_gpu_notes(sheet)})
        return
    print(f"Wrote {path}. Check what it does not say: dse show gpu {path}")
    for note in own_gpu_notes(sheet):
        print(note)
