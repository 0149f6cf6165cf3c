"""Faults as data: which there are, where they can be made, when in a phase they strike. Pure.

::

    phase:  began ──► pods bound: ``at`` of its pods ──► ends
                            │ strikes                     │ strikes now, if it has not yet
                            ├── lasts seconds ──► over    │
                            └── until the phase is placed ┴► over

The trigger is how far the phase has come, not a time: half of a phase is half of it at any size
and on any machine.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

LONGEST_S: Final = 3600.0


class Kind(StrEnum):
    """What can go wrong."""

    KILL_EXTENDER = "kill-extender"
    LEADER_CHANGE = "leader-change"
    RESTART_API_SERVER = "restart-api-server"
    WATCH_DROPS = "watch-drops"
    GONE_STORM = "gone-storm"
    SLOW_RESPONSES = "slow-responses"
    CONFLICTS = "conflicts"
    NODE_FAILURES = "node-failures"
    CLOCK_STEP = "clock-step"


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One fault of a phase."""

    kind: Kind
    #: Share of the phase's pods that are bound when it strikes, 0: at once; ``None``: as ``HABITS``
    #: has it for the kind.
    at: float | None = None
    #: Seconds; ``None``: as ``HABITS`` has it for the kind.
    lasts: float | None = None

    @property
    def strikes_at(self) -> float:
        """Share of the phase's pods that are bound when it strikes."""
        return HABITS[self.kind].at if self.at is None else self.at

    @property
    def seconds(self) -> float | None:
        """How long it lasts, ``None``: until its phase is placed."""
        return HABITS[self.kind].lasts if self.lasts is None else self.lasts


@dataclass(frozen=True, slots=True)
class Habit:
    """How a kind of fault goes by default."""

    #: What happens, for the report.
    what: str
    #: Share of the phase's pods that are bound when it strikes.
    at: float = 0.5
    #: Seconds; ``None``: until the phase is placed.
    lasts: float | None = None
    #: Whether its length can be chosen.
    lasting: bool = True


HABITS: Final[Mapping[Kind, Habit]] = {
    Kind.KILL_EXTENDER: Habit(
        "SIGKILL for the extender that leads, started again at once", lasting=False
    ),
    Kind.LEADER_CHANGE: Habit(
        "the leading of two extenders is asked to end and hands over", lasting=False
    ),
    Kind.RESTART_API_SERVER: Habit(
        "SIGKILL for the API server, started again at once", lasting=False
    ),
    Kind.WATCH_DROPS: Habit("every watch is cut, once a second while pods are bound", at=0.25),
    Kind.GONE_STORM: Habit("watches are cut and resumed versions are gone, once a second", lasts=3),
    Kind.SLOW_RESPONSES: Habit("5 % of the API server's answers come 2 s late", at=0.0),
    Kind.CONFLICTS: Habit("1 % of the changes of objects get 409 Conflict", at=0.0),
    Kind.NODE_FAILURES: Habit("1 % of the nodes vanish with their pods, and come back", lasts=5),
    Kind.CLOCK_STEP: Habit("the extenders' clock goes an hour ahead, and back", lasts=5),
}
# Made by a proxy between Muster and the API server, on the planes that have no better way.
PROXIED: Final[Mapping[bool, frozenset[Kind]]] = {
    True: frozenset(
        {Kind.WATCH_DROPS, Kind.GONE_STORM, Kind.SLOW_RESPONSES, Kind.CONFLICTS},
    ),
    False: frozenset({Kind.SLOW_RESPONSES, Kind.CONFLICTS}),
}


def refusal(kind: Kind, *, real: bool) -> str:
    """Return why a fault cannot be made on this control plane, "" if it can."""
    if kind is Kind.RESTART_API_SERVER and not real:
        return (
            f"{kind}: the simulated API server keeps its objects in memory and would come back "
            "empty; --control-plane real can (etcd keeps them)"
        )
    return ""


def problems(at: str, faults: Iterable[Fault]) -> Iterator[str]:
    """Yield what is wrong with the faults of a phase, one sentence each."""
    for index, fault in enumerate(faults):
        where = f"{at}[{index}]"
        if not 0 <= fault.strikes_at <= 1:
            yield f"{where}.at: {fault.at}: a share of the phase's pods lies between 0 and 1"
        if fault.lasts is None:
            continue
        if not HABITS[fault.kind].lasting:
            yield f"{where}.lasts: {fault.kind} is done as soon as it is ready again: leave it out"
        elif not 0 < fault.lasts <= LONGEST_S:
            yield f"{where}.lasts: {fault.lasts}: seconds, more than 0, at most {LONGEST_S:.0f}"
