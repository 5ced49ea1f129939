"""Command that writes JSON Schemas of the files that users write: schema."""

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dse.cli.app import Json, app, made, print_json


@app.command
def schema(
    kind: str = "space",
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["-o", "--out"])] = None,
    json_: Json = False,
) -> None:
    """Print the JSON Schema of a TOML file, by which editors complete and check it.

    With taplo or Even Better TOML, a file's first line names it: #:schema ./space.schema.json

    Parameters
    ----------
    kind:
        space, gpu or workload.
    out:
        File to write it to.
    """
    from dse.base.atomic_files import write_whole
    from dse.space.json_schema import json_schema

    document = json_schema(kind)
    if out is None:
        print_json(document)
        return
    write_whole(made(out), json.dumps(document, indent=1) + "\n")
    if json_:
        print_json({"schema": str(out)})
    else:
        print(f"Wrote {out}. First line of a file that it checks: #:schema {out}")
