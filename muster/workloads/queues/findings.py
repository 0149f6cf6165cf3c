"""What a reader finds wrong with an object, and what Muster does not obey of it."""

from collections.abc import Collection
from typing import Final

from muster.kube import quantity
from muster.kube.wire import Quantity
from muster.workloads.queues.amounts import ALLOWED, AmountError, amount

_LONGEST_VALUE: Final = 80  # characters of a refused value that a message repeats
WITHOUT_ROOM: Final = "no gang of this kind of queue gives way here (makingRoom.queues)"
WITHOUT_PAST: Final = "past use does not count here (queueing.usage.halfLifeSeconds is 0)"
WITHOUT_WORKLOADS: Final = "gangs do not wait for it, only Workloads (queueing.kueue.workloads)"
_LONGEST: Final = 400  # characters of a message: names in it are users', too


class QueueFindings:
    """Collected while an object is read: a wrong value never stops the reading."""

    def __init__(self) -> None:
        """Begin with nothing found."""
        self.problems: list[str] = []
        self.unobeyed: list[str] = []
        self.unobeyed_without_room: list[str] = []
        self.unobeyed_without_past: list[str] = []
        self.unobeyed_without_workloads: list[str] = []

    def wrong(self, field: str, value: object, allowed: str) -> None:
        """Take note of a value that is not allowed."""
        self.problem(f'{field}: "{shown(value)}" is not allowed: {allowed}')

    def problem(self, message: str) -> None:
        """Take note of what is wrong, in words that are there already."""
        self.problems.append(shown(message, _LONGEST))

    def ignored(self, field: str, why: str) -> None:
        """Take note of a field that is written and not obeyed: why, and what happens instead."""
        self.unobeyed.append(shown(f"{field}: {why}", _LONGEST))

    def needs_room(self, field: str, value: object) -> None:
        """Take note of a field that is obeyed only where gangs of its dialect give way."""
        message = f"{field}: {shown(value)}: {WITHOUT_ROOM}"
        self.unobeyed_without_room.append(shown(message, _LONGEST))

    def needs_past(self, field: str, value: object) -> None:
        """Take note of a field that is obeyed only where past use counts."""
        message = f"{field}: {shown(value)}: {WITHOUT_PAST}"
        self.unobeyed_without_past.append(shown(message, _LONGEST))

    def needs_workloads(self, field: str, value: object) -> None:
        """Take note of a field that is obeyed only where Kueue's Workloads are admitted."""
        message = f"{field}: {shown(value)}: {WITHOUT_WORKLOADS}"
        self.unobeyed_without_workloads.append(shown(message, _LONGEST))

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
        except AmountError:
            self.wrong(field, written, ALLOWED)
            return otherwise

    def thousandths(self, field: str, written: Quantity | None, otherwise: int) -> int:
        """Return a quantity in thousandths, rounded up."""
        return self.amount(field, quantity.CPU, written, otherwise)


def shown(value: object, longest: int = _LONGEST_VALUE) -> str:
    """Return a value cut and without control characters: it goes into one-line messages."""
    text = str(value)
    cut = text if len(text) <= longest else text[:longest] + "…"
    return "".join(c if c.isprintable() else "�" for c in cut)
