"""Generations as texts for a storage: the designs evaluated, and those that entered the front."""

import base64
import zlib

import numpy as np


def packed(index: np.ndarray, entrants: np.ndarray, table: np.ndarray) -> dict[str, str]:
    """Return designs and entrants as 64-bit whole numbers and the entrants' ``table`` as 64-bit floats, compressed."""
    arrays = {"designs": index.astype("<i8"), "front": entrants.astype("<i8"), "costs": table.astype("<f8")}
    return {key: base64.b64encode(zlib.compress(array.tobytes(), 1)).decode() for key, array in arrays.items()}


def unpacked(texts: dict[str, str], width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return designs, entrants and their table of ``width`` columns."""
    raw = {key: zlib.decompress(base64.b64decode(text)) for key, text in texts.items()}
    index, entrants = np.frombuffer(raw["designs"], "<i8"), np.frombuffer(raw["front"], "<i8")
    return index.astype(np.int64), entrants.astype(np.int64), np.frombuffer(raw["costs"], "<f8").reshape(-1, width)
