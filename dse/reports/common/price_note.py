"""What the dollars of a sweep rest on: the price of an hour of each base GPU, and what it leaves out."""

from dse.space.space import Space

FREE = "it never waits for requests, and a changed design costs what its base does"


def price_headline(space: Space) -> list[str]:
    """Return that a changed design costs what its base does as one short sentence, where that decides dollars."""
    changes = space.usd_per_hour is not None and any(axis.name in space.base.entries for axis in space.axes)
    return ["Careful: an hour of a changed design is priced as one of its base."] if changes else []


def price_note(space: Space) -> list[str]:
    """Return the note on prices; nothing where no objective or constraint names dollars of tokens."""
    if space.usd_per_hour is None:
        return []
    bases = [one.base for one in space.variants.every] if space.variants else [space.base]
    prices = {sheet.name: sheet.hourly_price for sheet in bases}
    listed = "; ".join(f"{name} {price}" for name, price in prices.items())
    return [f"Dollars an hour of a GPU: {listed}; {FREE}."]
