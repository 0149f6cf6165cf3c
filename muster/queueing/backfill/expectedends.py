"""When what runs now is expected to end.

::

    gang that runs  ├──── its run time ────┤ end
    ends now        ├──── its run time ────┤··┤ its end has not been seen yet: slack
    overrun         ├──── its run time ────┤····· as long again as it is late, a minute at least
    deleted         ends when it is killed at the latest: its grace period after its deletion
    gives way       ends after the longest grace period of its members; those that others can
                    spare: they alone
    unknown run time, or a pod of no gang: never

What overruns, or is not gone when it is killed, is not given up at once: the longer it is late, the
longer it is expected to go on. So what waits for it is moved a few times, not every second.
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
GANGS_PER_STEP: Final = 16
RunTime = Callable[[GangView], float | None]
"""Returns for how many seconds a gang runs at most, ``None``: unknown."""
Going = Mapping[GangKey, Collection[PodUid]]
"""Gangs that give way to others now, with the members that end; empty: all of them."""
NOBODY: Final[Going] = {}
_NO_ROWS: Final[Rows] = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedEnd:
    """Pods that are expected to end together."""

    #: Seconds since the epoch.
    at: float
    #: int32, their rows.
    rows: Rows
    #: Their gang, ``None``: pods of any gang, or none, that are being deleted.
    gang: GangKey | None = None
    #: Whether they run for longer than was expected, or are there after they were killed.
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
    found = certain_ends(snapshot, now, going, slack)
    for number, row in enumerate(_gangs_on_nodes(snapshot)):
        view = snapshot.gang(snapshot.gang_at(row))
        end = None if view is None else end_of(view, now, run_time, slack)
        if end is not None:
            found += _of_those_that_stay(snapshot, end, going)
        if number % GANGS_PER_STEP == 0:
            yield
    return _in_order(found)


def certain_ends(
    snapshot: Snapshot, now: float, going: Going, slack: float = 0.0
) -> list[ExpectedEnd]:
    """Return what ends soon, whatever was expected, the first end first.

    Reads the gangs that give way, and no other.
    """
    found = []
    for view in filter(None, map(snapshot.gang, going)):
        held = np.concatenate([view.in_room, view.leaving])
        rows = held[_leave(snapshot, held, going[view.key])]
        if len(rows):
            found.append(_going_end(snapshot, rows, view.key, now, slack))
    counted = np.concatenate([_NO_ROWS, *(end.rows for end in found)])
    return _in_order([*found, *_deleted(snapshot, counted, now, slack)])


def _going_end(
    snapshot: Snapshot, rows: Rows, gang: GangKey, now: float, slack: float
) -> ExpectedEnd:
    """Return when members end that give way: the last one at the latest."""
    leaves = snapshot.pods.has(rows, PodFlag.TERMINATING)
    at, is_late = 0.0, False
    if leaves.any():
        at, is_late = _killed(float(snapshot.pods.ends_by[rows[leaves]].max()), now, slack)
    if not leaves.all():
        at = max(at, now + snapshot.longest_grace(rows[~leaves]))
    return ExpectedEnd(at, rows, gang, is_overrun=is_late, is_certain=True)


def _killed(by: float, now: float, slack: float) -> tuple[float, bool]:
    """Return when a pod is gone that is killed ``by`` then (0: not known), and if it is late."""
    return _seen(by, now, slack) if by else (now, False)


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
    began = now if view.first_bound_at is None else view.first_bound_at
    at, is_overrun = _seen(began + seconds, now, slack)
    return ExpectedEnd(at, rows, view.key, is_overrun=is_overrun)


def _seen(at: float, now: float, slack: float) -> tuple[float, bool]:
    """Return when an end is expected to be seen that was expected at a time; and if it is late."""
    if at > now:
        return at, False
    if at + slack > now:
        return at + slack, False
    return now + max(now - at, LEAST_OVERRUN_S), True


def _gangs_on_nodes(snapshot: Snapshot) -> list[int]:
    """Return the rows of the gangs that hold room, ascending."""
    node, gang = snapshot.pods.node.array(), snapshot.pods.gang.array()
    rows: NDArray[np.int32] = np.unique(gang[(node != NO_ROW) & (gang != NO_ROW)])
    return [int(row) for row in rows]


def _deleted(snapshot: Snapshot, counted: Rows, now: float, slack: float) -> Iterator[ExpectedEnd]:
    """Yield the other pods that are being deleted: an end for each time at which some are killed.

    Members of one gang end together. ``counted``: rows of those that give way.
    """
    pods = snapshot.pods
    leaving = (pods.flags.array() & np.uint8(PodFlag.TERMINATING)) != 0
    leaving[counted] = False
    rows = np.flatnonzero(leaving & (pods.node.array() != NO_ROW)).astype(np.int32)
    times, which = np.unique(_latest(snapshot, rows), return_inverse=True)
    for number, by in enumerate(times.tolist()):
        at, is_late = _killed(by, now, slack)
        yield ExpectedEnd(at, rows[which == number], is_overrun=is_late, is_certain=True)


def _latest(snapshot: Snapshot, rows: Rows) -> NDArray[np.float64]:
    """Return float64[n]: when the last of each pod's gang is killed, or the pod, if it has none."""
    by, gang = snapshot.pods.ends_by[rows], snapshot.pods.gang[rows]
    _, which = np.unique(gang, return_inverse=True)
    latest = np.zeros(len(rows))
    np.maximum.at(latest, which, by)
    found: NDArray[np.float64] = np.where(gang == NO_ROW, by, latest[which])
    return found
