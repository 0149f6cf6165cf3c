"""When what runs now is expected to end.

::

    gang that runs  ├──── its run time ────┤ end
    ends now        ├──── its run time ────┤··┤ its end has not been seen yet: slack
    overrun         ├──── its run time ────┤····· as long again as it is late, a minute at least
    deleted         ends now
    gives way       ends in 30 s: a pod has so long to end where it does not say otherwise;
                    members that others can spare: they alone
    unknown run time, or a pod of no gang: never

A gang that overruns is not given up at once: the longer it is late, the longer it is expected to
go on. So what waits for it is moved a few times, not every second.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import NO_ROW, GangKey, PodUid
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView, Rows
from muster.cluster.tables.pods import PodFlag

LEAST_OVERRUN_S: Final = 60.0
LEAVING_S: Final = 30.0  # core/v1, PodSpec.terminationGracePeriodSeconds
GANGS_PER_STEP: Final = 16
RunTime = Callable[[GangView], float | None]
"""Returns for how many seconds a gang runs at most, ``None``: unknown."""
Going = Mapping[GangKey, Collection[PodUid]]
"""Gangs that give way to others now, with the members that end; empty: all of them."""
NOBODY: Final[Going] = {}


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedEnd:
    """Pods that are expected to end together."""

    #: Seconds since the epoch.
    at: float
    #: int32, their rows.
    rows: Rows
    #: Their gang, ``None``: pods of any gang, or none, that are being deleted.
    gang: GangKey | None = None
    #: Whether they run for longer than was expected.
    is_overrun: bool = False
    #: Whether they end soon, whatever was expected: they are being deleted, or give way.
    is_certain: bool = False


def expected_ends(
    snapshot: Snapshot,
    now: float,
    run_time: RunTime,
    going: Going = NOBODY,
    slack: float = 0.0,
) -> Steps[list[ExpectedEnd]]:
    """Return what is expected to end at all, the first end first, in slices.

    ``now``: seconds since the epoch. ``slack``: seconds from the end of a gang until its room is
    free.
    """
    found = certain_ends(snapshot, now, going)
    for number, row in enumerate(_gangs_on_nodes(snapshot)):
        view = snapshot.gang(snapshot.gang_at(row))
        end = None if view is None else end_of(view, now, run_time, slack)
        if end is not None:
            found += _of_those_that_stay(snapshot, end, going)
        if number % GANGS_PER_STEP == 0:
            yield
    return _in_order(found)


def certain_ends(snapshot: Snapshot, now: float, going: Going) -> list[ExpectedEnd]:
    """Return what ends soon, whatever was expected, the first end first.

    Reads the gangs that give way, and no other.
    """
    found = list(_deleted(snapshot, now))
    for view in filter(None, map(snapshot.gang, going)):
        held = view.in_room
        rows = held[_leave(snapshot, held, going[view.key])]
        if len(rows):
            found.append(ExpectedEnd(now + LEAVING_S, rows, view.key, is_certain=True))
    return _in_order(found)


def _of_those_that_stay(
    snapshot: Snapshot, end: ExpectedEnd, going: Going
) -> Iterator[ExpectedEnd]:
    """Yield the end of a gang without its members that give way."""
    members = None if end.gang is None else going.get(end.gang)
    if members is None:
        yield end
        return
    rows = end.rows[~_leave(snapshot, end.rows, members)]
    if len(rows):
        yield replace(end, rows=rows)


def _leave(snapshot: Snapshot, rows: Rows, members: Collection[PodUid]) -> NDArray[np.bool_]:
    """Return which of a gang's rows give way; ``members`` as in ``Going``."""
    uid = snapshot.pods.uid
    leave = (not members or uid(int(row)) in members for row in rows)
    return np.fromiter(leave, dtype=np.bool_, count=len(rows))


def _in_order(ends: Iterable[ExpectedEnd]) -> list[ExpectedEnd]:
    return sorted(ends, key=lambda end: (end.at, end.gang or ""))


def end_of(view: GangView, now: float, run_time: RunTime, slack: float = 0.0) -> ExpectedEnd | None:
    """Return when a gang ends, ``None``: nobody knows, or it holds nothing."""
    rows = view.in_room
    seconds = run_time(view)
    if seconds is None or not len(rows):
        return None
    at = (now if view.first_bound_at is None else view.first_bound_at) + seconds
    if at > now:
        return ExpectedEnd(at, rows, view.key)
    if at + slack > now:
        return ExpectedEnd(at + slack, rows, view.key)
    return ExpectedEnd(now + max(now - at, LEAST_OVERRUN_S), rows, view.key, is_overrun=True)


def _gangs_on_nodes(snapshot: Snapshot) -> list[int]:
    """Return the rows of the gangs that hold room, ascending."""
    node, gang = snapshot.pods.node.array(), snapshot.pods.gang.array()
    rows: NDArray[np.int32] = np.unique(gang[(node != NO_ROW) & (gang != NO_ROW)])
    return [int(row) for row in rows]


def _deleted(snapshot: Snapshot, now: float) -> Iterator[ExpectedEnd]:
    """Yield the pods that are being deleted, as one end."""
    pods = snapshot.pods
    leaving = (pods.flags.array() & np.uint8(PodFlag.TERMINATING)) != 0
    rows = np.flatnonzero(leaving & (pods.node.array() != NO_ROW)).astype(np.int32)
    if len(rows):
        yield ExpectedEnd(now, rows, is_certain=True)
