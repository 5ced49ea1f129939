"""Images and sounds of a workload: what its settings say of them, and the tokens that they take of a prompt."""

from typing import Any

from dse.base.errors import InputError
from dse.workload.counts import positive
from dse.workload.networks.encoder import ENCODE
from dse.workload.networks.images import Images, Sounds
from dse.workload.networks.network import Network

MEDIA_KEYS = {
    "images": "images of each request, encoded before its prompt, which holds their tokens",
    "image_size": "pixels of an image: WIDTHxHEIGHT, or the side of a square",
    "audio": "seconds of sound of each request, the same of a network that hears",
}
"""Keys of a workload about images and sounds, and what they mean."""

SIDE = 1024
"""Side of an image whose size is not given [pixel]."""

WIDEST = 16_384
"""Largest side of an image [pixel]."""


def media_of(network: Network, settings: dict[str, str], phase: str, where: str) -> dict[str, Any]:
    """Return how many images or sounds a request has and what the encoder makes of one, as :class:`Serving` names them;
    nothing where there are none. Raises InputError where the network has no encoder of them."""
    given = [key for key in MEDIA_KEYS if key in settings]
    encoder = network.encoder
    if not given and phase != ENCODE:
        return {}
    if encoder is None:
        raise InputError(f"{where}: {_what(given)}: {network.title} has no encoder that is covered; leave it out")
    key = "images" if isinstance(encoder.source, Images) else "audio"
    if wrong := [other for other in given if (other == "audio") != (key == "audio")]:
        raise InputError(f"{where}: {wrong[0]}: the encoder of {network.title} takes {encoder.medium}; give {key}")
    if phase == "decode":
        raise InputError(
            f"{where}: {given[0]} goes with phase=encode, prefill or generate: a decode step encodes nothing"
        )
    if "image_size" in given and "images" not in given and phase != ENCODE:
        raise InputError(f"{where}: image_size without images; give how many there are")
    if isinstance(encoder.source, Sounds):
        seconds = _count(settings, "audio", where, encoder.source.seconds)
        return {"media": 1, "grid": encoder.source.grid(float(seconds))}
    return {"media": _count(settings, "images", where, 1), "grid": encoder.source.grid(*_size(settings, where))}


def _what(given: list[str]) -> str:
    return given[0] if given else f"phase={ENCODE}"


def _count(settings: dict[str, str], key: str, where: str, default: int) -> int:
    if key not in settings:
        return default
    return positive(settings[key], f"{where}: {key}={settings[key]}", MEDIA_KEYS[key])


def _size(settings: dict[str, str], where: str) -> tuple[int, int]:
    """Width and height [pixel]."""
    text = settings.get("image_size", str(SIDE)).lower()
    sides = text.split("x")
    if len(sides) > 2:
        raise InputError(f"{where}: image_size={text} is not accepted; give WIDTHxHEIGHT, as 1024x768, or one side")
    width, height = ([*sides, *sides])[:2]
    found = tuple(positive(side, f"{where}: image_size={text}", MEDIA_KEYS["image_size"]) for side in (width, height))
    if max(found) > WIDEST:
        raise InputError(f"{where}: image_size={text} is not accepted; give sides of at most {WIDEST:,} pixels")
    return found[0], found[1]


def refuse_short(media: dict[str, Any], prompt: int, where: str) -> None:
    """Raise InputError where a ``prompt`` has no room for the tokens of its images or sounds."""
    tokens = media["media"] * media["grid"].tokens if media else 0
    if tokens >= prompt:
        raise InputError(
            f"{where}: its images or sounds take {tokens:,} tokens, and the prompt has {prompt:,} in all; give "
            "a prompt with room for them and its text"
        )
