"""Quantities of a quota as whole numbers of the model's units, and back.

A quota is rounded as a request is: up to a thousandth of a CPU, a byte, or a whole piece.
"""

from typing import Final

from muster.cluster.quota.cells import UNLIMITED
from muster.kube import quantity
from muster.kube.quantity import QuantityError
from muster.kube.wire import Quantity

_BINARY: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_IN_BYTES: Final = ("memory", "storage", "hugepages-")
ALLOWED: Final = "a quantity of 0 or more, like 8, 500m or 64Gi"


class AmountError(ValueError):
    """A quota's number that is no amount; the message names the field, the value and the rule."""


def amount(field: str, resource: str, written: Quantity) -> int:
    """Return a quantity in units of the model: milli for CPU, else whole units.

    What exceeds int64 is unlimited. Raises ``AmountError`` for what is no quantity, or negative.
    """
    try:
        found = quantity.parse(written)
    except QuantityError as error:
        raise AmountError(f'{field}: "{written}" is not allowed: {ALLOWED}') from error
    if found < 0:
        raise AmountError(f'{field}: "{written}" is not allowed: {ALLOWED}')
    scaled = found * 1000 if resource == quantity.CPU else found
    return min(-(-scaled.numerator // scaled.denominator), UNLIMITED)


def written(resource: str, units: int) -> str:
    """Return units of the model as a quantity that is exactly as much."""
    if resource == quantity.CPU and units % 1000:
        return f"{units}m"
    return str(units // 1000 if resource == quantity.CPU else units)


def readable(resource: str, units: int) -> str:
    """Return units of the model for people: bytes in the largest unit, with one decimal."""
    if any(word in resource for word in _IN_BYTES):
        for suffix, size in _BINARY:
            if units >= size:
                return f"{units / size:.1f}".removesuffix(".0") + suffix
    return written(resource, units)
