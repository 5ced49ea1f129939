"""Unit factors (multiply to get SI units), and how a number with its sign is written."""

KIB = 1024.0
MIB = 1024.0**2
KILO = 1e3
MEGA = 1e6
GIGA = 1e9
MILLI = 1e-3
NANO = 1e-9
BITS_PER_BYTE = 8.0
WARP_SIZE = 32.0


def signed(value: float, digits: int = 0) -> str:
    """Return a number with its sign and ``digits`` after the point, as readers see it: "+3.1", "−6.0", "0.0".

    The minus sign is the typographic one, as in plots; what rounds to zero has no sign.
    """
    text = f"{abs(value):,.{digits}f}"
    return text if float(text.replace(",", "")) == 0 else f"{'−' if value < 0 else '+'}{text}"
