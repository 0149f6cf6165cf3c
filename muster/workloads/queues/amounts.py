"""Quantities of a quota as whole numbers of the model's units.

A quota is rounded as a request is: up to a thousandth of a CPU, a byte, or a whole piece.
"""

from typing import Final

from muster.cluster.quota.cells import UNLIMITED
from muster.kube import quantity
from muster.kube.quantity import QuantityError
from muster.kube.wire import Quantity

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
