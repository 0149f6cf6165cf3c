"""Which of the gangs that have to leave their nodes end now.

::

    cheapest first ─► has it another place, or has its time come?
      ─► do all its budgets allow it, beside those before it?
      ─► may another gang of its queue end within this minute? ─► it ends now

A gang ends whole, so a budget must allow all of its pods that the budget holds. Gangs of one wave
share what a budget allows. The next wave begins once this one has settled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from muster.cluster.ids import GangKey


@dataclass(frozen=True, slots=True)
class Leaver:
    """A gang with pods on nodes that leave."""

    gang: GangKey
    queue: str
    #: Why it has no other place, "" where it has one.
    lacks: str
    #: From when on it ends without one, seconds since the epoch; ``None``: never.
    until: float | None
    #: Pods of it that end and that each disruption budget holds.
    held: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wave:
    """The gangs that end now, and why the others do not."""

    goes: tuple[GangKey, ...]
    waits: Mapping[GangKey, str]


def wave_of(
    leavers: Sequence[Leaver], allowed: Mapping[str, int], rates: Mapping[str, int], now: float
) -> Wave:
    """Return the wave that begins now.

    ``leavers``: the cheapest first. ``allowed``: pods that each budget lets go. ``rates``: gangs of
    each queue that may still end within this minute; a queue that is not there has no limit.
    """
    budgets, left = dict(allowed), dict(rates)
    goes, waits = list[GangKey](), dict[GangKey, str]()
    for one in leavers:
        why = _waits_for(one, budgets, left, now)
        if why:
            waits[one.gang] = why
            continue
        goes.append(one.gang)
        for budget, pods in one.held.items():
            budgets[budget] -= pods
        if one.queue in left:
            left[one.queue] -= 1
    return Wave(tuple(goes), waits)


def is_due(until: float | None, now: float) -> bool:
    """Return whether the time has come from which on a gang ends without another place."""
    return until is not None and now >= until


def _waits_for(one: Leaver, budgets: Mapping[str, int], left: Mapping[str, int], now: float) -> str:
    """Return what a gang waits for, "" for nothing."""
    if one.lacks and not is_due(one.until, now):
        return one.lacks
    for budget, pods in one.held.items():
        if pods > budgets.get(budget, 0):
            left_over = max(budgets.get(budget, 0), 0)
            return f"disruption budget {budget} allows {left_over} disruptions, {pods} are needed"
    if left.get(one.queue, 1) < 1:
        return "too many gangs of its queue have ended within this minute"
    return ""
