"""What a reader finds wrong with an object, and what Muster does not obey of it."""

from collections.abc import Collection
from typing import Final

from muster.kube import quantity
from muster.kube.wire import Quantity
from muster.workloads.queues.amounts import AmountError, amount

_LONGEST_VALUE: Final = 80  # characters of a refused value that a message repeats


class Findings:
    """Collected while an object is read: a wrong value never stops the reading."""

    def __init__(self) -> None:
        """Begin with nothing found."""
        self.problems: list[str] = []
        self.unobeyed: list[str] = []

    def wrong(self, field: str, value: object, allowed: str) -> None:
        """Take note of a value that is not allowed."""
        self.problems.append(f'{field}: "{shown(value)}" is not allowed: {allowed}')

    def ignored(self, field: str, why: str) -> None:
        """Take note of a field that is written and not obeyed: why, and what happens instead."""
        self.unobeyed.append(f"{field}: {why}")

    def one_of(self, field: str, value: str, allowed: Collection[str]) -> None:
        """Take note of a word that is none of the allowed ones; "" is the default."""
        if value and value not in allowed:
            self.wrong(field, value, f"one of {', '.join(allowed)}")

    def amount(self, field: str, resource: str, written: Quantity | None, otherwise: int) -> int:
        """Return an amount in units of the model; ``otherwise`` for one that is absent or wrong."""
        if written is None:
            return otherwise
        try:
            return amount(field, resource, written)
        except AmountError as error:
            self.problems.append(str(error))
            return otherwise

    def thousandths(self, field: str, written: Quantity | None, otherwise: int) -> int:
        """Return a quantity in thousandths, rounded up."""
        return self.amount(field, quantity.CPU, written, otherwise)


def shown(value: object) -> str:
    """Return a value cut and without control characters: it goes into one-line messages."""
    text = str(value)
    cut = text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
    return "".join(c if c.isprintable() else "�" for c in cut)
