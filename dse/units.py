"""Unit factors: multiply to get SI units."""

KIB = 1024.0
MIB = 1024.0**2
KILO = 1e3
MEGA = 1e6
GIGA = 1e9
MILLI = 1e-3
NANO = 1e-9
BITS_PER_BYTE = 8.0
WARP_SIZE = 32.0
