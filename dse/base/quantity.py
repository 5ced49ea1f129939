"""A number with its unit: what metrics are, in Python and in JSON."""

from typing import Any, NamedTuple


class Quantity(NamedTuple):
    """A value and its unit ("1" where it has none); unpacks as ``value, unit = quantity``."""

    value: float
    unit: str

    def __str__(self) -> str:
        return f"{self.value:.6g}" + ("" if self.unit == "1" else f" {self.unit}")

    def document(self) -> dict[str, Any]:
        """Return it as JSON documents hold it."""
        return self._asdict()
