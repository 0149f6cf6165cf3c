"""Gangs that run in part: what a partial gang is, and when to stop hoping for it.

::

      some bound, fewer than min_count                  enough are bound
   ──────────────► PARTIAL ──────────────────────────────────────► whole
                     │ partial_after: reported as Partial          ▲
                     ▼                                             │
                  PARTIAL ── room appears, it is completed ────────┘
                     │ roll_back_after, cannot be completed, never ran whole (or restarts),
                     ▼ every member has a controller
                  ROLLED BACK: all members evicted, made anew, planned whole

One whose missing members are all released waits for nothing but kube-scheduler, and is
left alone. A partial gang keeps room that does no work, but only a gang that never ran whole is
rolled back: the processes of one that did may hold work that only they can judge, and
its framework knows better than we what a lost member means. An owner who knows that a run goes on
from its last checkpoint sets ``muster.dev/repair: restart``: such a gang is taken down too.
"""

from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodFlag, PodView
from muster.queueing.order import begun


class Remedy(Enum):
    """What is due for a partial gang."""

    PATIENCE = auto()
    REPORT = auto()
    ROLL_BACK = auto()


@dataclass(frozen=True, slots=True)
class PartialTimeouts:
    """Seconds until a partial gang is reported, and until it is rolled back (``None``: never)."""

    report_s: float
    roll_back_s: float | None


def is_whole(gang: GangView) -> bool:
    """Return whether enough members are bound, to stay, or have succeeded."""
    return gang.spec is not None and _bound(gang) >= max(gang.spec.min_count, 1)


def is_partial(gang: GangView) -> bool:
    """Return whether some members stand on nodes, and too few for the gang to be of any use."""
    return gang.spec is not None and len(gang.bound) > 0 and not is_whole(gang)


def replaceable(gang: GangView, pods: PodView) -> bool:
    """Return whether every member to evict, or waiting, has a controller that makes it anew."""
    rows = np.concatenate([gang.waiting, gang.blocked, gang.assumed, gang.released, gang.bound])
    return bool(pods.has(rows, PodFlag.OWNED).all())


def may_have_run(gang: GangView, *, started_at: float, patience: PartialTimeouts) -> bool:
    """Return whether a partial gang may have run whole before the process started.

    Such a process does not know the past of the partial gangs it finds. One that never was whole
    would have been rolled back by its predecessor in time, so an older one probably ran.
    """
    if patience.roll_back_s is None or gang.first_bound_at is None:
        return True
    return started_at - gang.first_bound_at > patience.roll_back_s


def remedy(
    gang: GangView, pods: PodView, *, partial_s: float, ran: bool, patience: PartialTimeouts
) -> Remedy:
    """Return what is due for a partial gang that has been one for ``partial_s`` seconds."""
    roll_back_s = patience.roll_back_s
    is_late = roll_back_s is not None and partial_s >= roll_back_s
    may = not ran or (gang.spec is not None and gang.spec.restarts)
    if is_late and may and begun(gang) and replaceable(gang, pods):
        return Remedy.ROLL_BACK
    return Remedy.REPORT if partial_s >= patience.report_s else Remedy.PATIENCE


def _bound(gang: GangView) -> int:
    return len(gang.bound) + gang.succeeded
