"""Averages as quantities: fractions of pieces, where amounts in the model are whole."""

from typing import Final

from muster.kube import quantity
from muster.workloads.queues.amounts import written

_LARGE: Final = 1e6  # of what is counted in such numbers, thousandths mean nothing


def text(resource: str, units: float) -> str:
    """Return an average in units of the model as a quantity: to a thousandth, or to a byte."""
    if resource == quantity.CPU:
        return written(resource, round(units))
    if units >= _LARGE:
        return str(round(units))
    thousandths = round(units * 1000)
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def units(resource: str, written_text: object) -> float:
    """Return a quantity in units of the model. Raises ``QuantityError`` for what is none."""
    found = quantity.parse(written_text if isinstance(written_text, int) else str(written_text))
    return max(0.0, float(found * 1000 if resource == quantity.CPU else found))
