"""Pages that commands write: a name that a browser opens as a page, and where it was written."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from dse.base.errors import InputError
from dse.cli.app import print_notes

Page = Annotated[
    Path | None,
    Parameter(name=["-o", "--out"], help="HTML page to write; a name without an end gets .html."),
]

ENDS = (".html", ".htm")
"""Ends of files that browsers show as pages; others they show as text, or save."""


def page_file(out: Path, *inputs: Path | str | None) -> Path:
    """Return where a page is written: ``out``, ended by .html where it has no end.

    ``inputs``: what the command reads. Raises InputError where nothing can be written there, or another kind of file
    is meant. Pipes and devices are kept as they are.
    """
    from dse.reports.common.page_parts import check_writable

    check_writable(out, *inputs)
    if out.suffix.lower() in ENDS or (out.exists() and not out.is_file()):
        return out
    if out.suffix[1:].isalpha():  # an end; that of llama3.1 is none
        raise InputError(f"{out}: a page is HTML, not {out.suffix}; give a name that ends in .html")
    page = out.with_name(f"{out.name}.html")
    check_writable(page, *inputs)
    return page


def say_page(page: Path | None, json_: bool) -> None:
    """Print where a page was written, on stderr where stdout holds a JSON document."""
    if page is not None and json_:
        print_notes(f"wrote {page}")
    elif page is not None:
        print(f"\nThe page with the plots: {page}")


def folder_of_results(out: Path | None, default: Path | str) -> Path:
    """Return the folder of a sweep or a search; raises InputError at a page's name, which would become a folder's."""
    if out is not None and out.suffix.lower() in ENDS and not out.is_dir():
        raise InputError(f"-o {out}: is a folder's, and the page in it is {out.stem}/report.html; give -o {out.stem}")
    return out or Path(default)
