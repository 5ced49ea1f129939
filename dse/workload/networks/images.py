"""How much an encoder is given: patches of images and the tokens they become, frames of sound the same."""

from dataclasses import dataclass
from math import ceil, floor, sqrt

NEAREST, UP, FIXED, TILES, CROPS, BUDGET = "nearest", "up", "fixed", "tiles", "crops", "budget"
"""How an image is scaled: each side to the nearest multiple of a token's, or the next one; the whole to a size of the
encoder's, whatever it was; into tiles of that size and one of the whole, as it is or enlarged to as many as may be; or
to a number of patches."""


@dataclass(frozen=True)
class Grid:
    """What an encoder sees of one medium: ``pieces`` of it, each ``rows`` x ``columns`` patches and so many ``tokens``
    for the language model in all. ``extra`` patches of a piece stand for none of the image (class tokens)."""

    pieces: int
    rows: int
    columns: int
    tokens: int
    extra: int = 0

    @property
    def patches(self) -> int:
        """Patches of a piece that attend each other."""
        return self.rows * self.columns + self.extra


@dataclass(frozen=True)
class Images:
    """Images as patches of ``patch`` x ``patch`` pixels, ``merge`` x ``merge`` of which become a token."""

    patch: int  # [pixel]
    merge: int  # [patch] of a token's side
    values: int  # of a patch: channels, pixels, and frames where a patch has several
    sizing: str  # how an image is scaled, one of the words above
    side: int = 0  # [pixel] of an image or tile of a fixed size
    most: int = 0  # tiles, or tokens of an image, where those are limited
    class_tokens: int = 0  # of a piece

    def grid(self, width: int, height: int) -> Grid:
        """Return what becomes of an image of ``width`` x ``height`` [pixel]."""
        pieces, token = 1, self.patch * self.merge
        if self.sizing == CROPS:
            return self._cropped(width, height)
        if self.sizing in (FIXED, TILES):
            pieces = self._tiles(width, height) if self.sizing == TILES else 1
            rows = columns = self.side // self.patch
        else:
            scale = sqrt(self.most * token**2 / (width * height)) if self.sizing == BUDGET else 1.0
            whole = {NEAREST: _nearest, UP: ceil, BUDGET: floor}[self.sizing]
            rows, columns = (max(1, whole(scale * side / token)) * self.merge for side in (height, width))
        tokens = pieces * ceil(rows / self.merge) * ceil(columns / self.merge)
        return Grid(pieces, rows, columns, tokens, self.class_tokens)

    def _cropped(self, width: int, height: int) -> Grid:
        """Crops of an image that is scaled to as many as there may be, and one of the whole; tokens that end its rows
        and part the two count too (image_processing_phi3_v.py: calc_hd_transform_size, num_img_tokens)."""
        ratio, across = max(width, height) / min(width, height), 1
        while (across + 1) * ceil((across + 1) / ratio) <= self.most:
            across += 1
        down = ceil(int(across * self.side / ratio) / self.side)
        rows, pieces, patches = (down if width >= height else across), across * down + 1, self.side // self.patch
        side = patches // self.merge
        return Grid(pieces, patches, patches, pieces * side**2 + 1 + (rows + 1) * side, self.class_tokens)

    def _tiles(self, width: int, height: int) -> int:
        """Tiles of the canvas that enlarges an image least, or else shrinks it least (image_processing_llama4_fast.py),
        and one of the whole where there are several."""
        canvases = [(r, c) for r in range(1, self.most + 1) for c in range(1, self.most // r + 1)]
        scales = {(r, c): min(c * self.side / width, r * self.side / height) for r, c in canvases}
        enlarged = [scale for scale in scales.values() if scale >= 1.0]
        best = min(enlarged) if enlarged else max(scales.values())
        tiles = min(r * c for (r, c), scale in scales.items() if scale == best)
        return tiles + (tiles > 1)


def _nearest(sides: float) -> int:
    return round(sides)


@dataclass(frozen=True)
class Sounds:
    """Sound in pieces of ``seconds``, each of ``frames`` that attend each other, ``merge`` of which become a token."""

    bins: int  # of the spectrum
    frames: int  # [frame] of a piece, half of those of its spectrum
    seconds: int  # of a piece, which silence fills up
    merge: int  # [frame] of a token

    def grid(self, seconds: float) -> Grid:
        """Return what becomes of so many ``seconds`` of sound."""
        pieces = ceil(seconds / self.seconds)
        return Grid(pieces, 1, self.frames, pieces * (self.frames // self.merge))
