"""The parts that every page is made of: the document, sections, tables, notes and drawn figures."""

import os
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from dse.base.atomic_files import write_whole
from dse.base.brief import count_of
from dse.base.errors import InputError
from dse.reports.common import figures
from dse.reports.common.figures_narrow import SCRIPT, narrow_script

FEW = 3
"""Sections from which a page has a list of them."""

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


def document(title: str, body: str) -> str:
    """Return one HTML document that loads nothing, plotly.js in it once."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>\n'
        f"<script>{figures.plotly_script()}</script>\n</head>\n<body>\n{contents(body)}<main>\n{body}\n</main>\n"
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def contents(body: str) -> str:
    """Return links to the named sections of a page, folded; nothing where there are few."""
    named = re.findall(r'<section id="([\w-]+)">\n<h2>(.*?)</h2>', body)
    if len(named) < FEW:
        return ""
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title in named)
    return f'<details class="contents"><summary>contents</summary><nav>{links}</nav></details>\n'


def write_document(path: Path, text: str) -> None:
    """Write a page whole or not at all; raises InputError where it cannot be written."""
    check_writable(path)
    write_whole(path, text)


def check_writable(path: Path | None, *inputs: Path | str | None) -> None:
    """Raise InputError where a path cannot be that of a file to write, before anything is computed for it.

    ``inputs``: what the command reads, which it must not write over (names that are no files are passed over).
    """
    if path is None:
        return
    if path.exists() and any(Path(one).exists() and path.samefile(one) for one in inputs if one is not None):
        raise InputError(f"{path}: is read by this command; give another path to write")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the path of a file to write")
    there = next((parent for parent in path.absolute().parents if parent.exists()), path)
    if not there.is_dir():
        raise InputError(f"{path}: cannot be written ({there} is a file); give another path")
    special = path.exists() and not path.is_file()  # a pipe, a device: written where it is, whoever owns its folder
    if not special and not os.access(there, os.W_OK):
        raise InputError(f"{path}: cannot be written ({there} takes no files); give another path")


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with its heading, to be linked to by its ``name`` ("": by none); empty parts are left out."""
    place = f' id="{name}"' if name else ""
    return f"<section{place}>\n<h2>{escape(title)}</h2>\n" + "\n".join(filter(None, parts)) + "\n</section>"


def opening(lead: str, calibration: str, title: str, sentences: Iterable[str]) -> str:
    """Return what a page begins with: what runs, by which calibration, on what, and the answer in sentences."""
    badge = f'<span class="badge">calibration {escape(calibration)}</span>'
    said = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        f'<header>\n<p class="lead">{escape(lead)}{badge}</p>\n<h1>{escape(title)}</h1>\n</header>\n'
        f'<section id="answer" class="answer">\n{said}\n</section>'
    )


def folded_notes(lines: Sequence[str], gist: str = "") -> str:
    """Return what an answer rests on, folded under its gist and the number of notes."""
    notes = "\n".join(f"<p>{escape(line)}</p>" for line in lines)
    summary = "; ".join(filter(None, [gist, count_of(len(lines), "note")]))
    return f'<details class="caveats">\n<summary>{escape(summary)}</summary>\n{notes}\n</details>'


def note(text: str) -> str:
    """Return a paragraph of small print."""
    return f'<p class="note">{escape(text)}</p>'


def drawn(figure: figures.go.Figure, name: str) -> str:
    """Return a figure as a part of a section."""
    label = name.removeprefix("figure-").replace("-", " ")
    plot = figures.figure_html(figure, name) + narrow_script(figure, name)
    return f"<figure class='drawn' style='margin:0' aria-label=\"{escape(label)}\">{plot}</figure>"


def figure_section(title: str, small: str, figure: figures.go.Figure, name: str) -> str:
    """Return a section of one figure, called ``name``, below its small print."""
    return section("", title, note(small) if small else "", drawn(figure, name))


def table(head: str, rows: list[str], caption: str = "") -> str:
    """Return a table that scrolls by itself where it is too wide."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "\n".join(rows)
    header = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{title}{header}<tbody>\n{body}\n</tbody></table></div>'


def row(cells: str, is_base: bool = False) -> str:
    """Return a row of a table, the baseline's marked."""
    return f'<tr class="base">{cells}</tr>' if is_base else f"<tr>{cells}</tr>"


def swatches(meanings: dict[str, tuple[str, str]]) -> str:
    """Return what the colours of a stack mean: part -> its colour and its meaning."""
    items = [
        f'<li><span class="swatch" style="background:{colour}"></span><b>{escape(name)}</b>: {escape(text)}</li>'
        for name, (colour, text) in meanings.items()
    ]
    return f'<ul class="causes">{"".join(items)}</ul>'
