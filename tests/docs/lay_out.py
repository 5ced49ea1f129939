"""Lay the pages out for the site: README.md, docs/ and the files that they link to, in their folders.

Run with ``python -m tests.docs.lay_out FOLDER``. A link to a folder becomes one to its README.md, and one to a notebook
one to the page that :mod:`tests.docs.run_notebooks` makes of it.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINKED = ("*.md", "*.png", "*.svg", "*.toml", "*.csv", "*.py", "*.json", "LICENSE", "CITATION.cff")
"""Files of the project that pages may link to."""

LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")


def lay_out(folder: Path) -> None:
    """Copy the files that git knows into a folder, the links of pages made whole."""
    call = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *LINKED]
    listed = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        if not (ROOT / name).is_file():
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            text = (ROOT / name).read_text(encoding="utf-8")
            (folder / name).write_text(whole(text, (ROOT / name).parent), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / name, folder / name)


def whole(text: str, place: Path) -> str:
    """Return the text of a page in a folder, its links to notebooks and folders leading to their pages."""

    def replaced(link: re.Match[str]) -> str:
        target, section = link[1].rstrip("/"), link[2] or ""
        if target.endswith(".ipynb"):
            return f"]({target.removesuffix('.ipynb')}.md{section})"
        return f"]({target}/README.md{section})" if (place / target / "README.md").is_file() else link[0]

    return LINK.sub(replaced, text)


if __name__ == "__main__":
    lay_out(Path(sys.argv[1]))
