"""The user's cache folder: what can be made anew from the package's own files, kept from one command to the next."""

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dse.base.atomic_files import write_bytes
from dse.base.text_file import parsing, read_text


def cache_folder() -> Path | None:
    """Return the folder in which this package keeps things for a user, None where the user has no home."""
    try:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # as in a container
        return None
    return root / "gpu-dse"


def read_tomls(kind: str, paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the contents of the package's TOML files by name, parsed once for all commands.

    They are kept as one JSON document, called ``kind`` and a hash of every file: Python's own TOML parser reads a
    megabyte in half a second, its JSON parser in 20 ms. Files that changed have another hash. Where nothing can be
    kept, each command parses for itself. Raises InputError where a file is no TOML.
    """
    texts = {name: read_text(path) for name, path in paths.items()}
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]
    folder = cache_folder()
    kept = folder and folder / f"{kind}-{digest}.json"
    if kept and (found := _kept(kept)) is not None and found.keys() == texts.keys():
        return found
    contents = {}
    for name, text in texts.items():
        with parsing(paths[name], "TOML"):
            contents[name] = tomllib.loads(text)
    if kept:
        _keep(kept, f"{kind}-*.json", contents)
    return contents


def _kept(path: Path) -> dict[str, Any] | None:
    """A document as it was kept, None where it is not there or is not whole."""
    with suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else None
    return None


def _keep(path: Path, former: str, contents: dict[str, Any]) -> None:
    """Keep a document in place of those of other versions; one with dates, which JSON lacks, is not kept."""
    with suppress(OSError, TypeError):
        document = json.dumps(contents).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(former):
            old.unlink(missing_ok=True)
        write_bytes(path, document)
