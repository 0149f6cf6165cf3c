"""One gang as planning sees it: its spec, and its members by state, in rank order."""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangPhase, GangSpec, hot_spares_wanted
from muster.cluster.tables.pods import STATES, PodFlag, PodState, PodView

Rows = NDArray[np.int32]

# Numbers: numpy and Python 3.11 are slow with members of an Enum.
_STANDBY: Final = PodState.STANDBY.value
_FINISHED: Final = PodState.FINISHED.value
_BOUND: Final = PodState.BOUND.value
_TERMINATING: Final = PodFlag.TERMINATING.value
_SUCCEEDED: Final = PodFlag.SUCCEEDED.value


@dataclass(frozen=True, slots=True, eq=False)
class GangView:
    """A gang at one generation.

    Members are int32 pod rows sorted by (rank, name, uid), one array per state.
    """

    #: ``dialect/namespace/name``.
    key: GangKey
    #: ``None`` until the object that describes the gang is known. The minimum is 1 for a gang that
    #: needs its minimum only once (``GangSpec.once``) and has run.
    spec: GangSpec | None
    #: Its phase, as drawn in ``muster.cluster.specs.gangspec``.
    phase: GangPhase
    #: The highest priority of its unfinished members.
    priority: int
    #: Name of its queue, "" for none.
    queue: str
    #: Members that can be planned now.
    waiting: Rows
    #: Members with scheduling gates of others, or terminating before they are bound.
    blocked: Rows
    #: Members that hold room and are not released.
    assumed: Rows
    #: Members that hold room and whose pins are in the API server.
    released: Rows
    #: Members that are bound.
    bound: Rows
    #: Members that are bound and being deleted: their room is used, but the gang needs successors.
    leaving: Rows
    #: Members that succeeded or failed.
    finished: Rows
    #: How many of ``finished`` count towards ``spec.min_count``.
    succeeded: int
    #: Seconds since the epoch.
    submitted_at: float
    #: Seconds since the epoch, ``None``: not yet.
    first_bound_at: float | None
    #: Seconds since the epoch.
    last_member_at: float
    #: Plans made and refused.
    attempts: int
    #: Refusals since the last plan held.
    skips: int
    #: Why the last plan was refused, "" for none.
    last_reason: str
    #: Rows of its hot spares, which are no members.
    standby: Rows = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    #: Those of ``finished`` that succeeded, whether they count or not.
    done: Rows = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    #: ``spec`` as its user wrote it.
    written: GangSpec | None = None
    #: Whether one of its roles is below its minimum, and a member of it waits.
    needs_role: bool = False

    @property
    def in_room(self) -> Rows:
        """Those that hold room, hot spares too, and are not being deleted."""
        return np.concatenate([self.bound, self.released, self.assumed, self.standby])

    @property
    def counted(self) -> Rows:
        """Those of ``done`` that count towards ``spec.min_count`` and its roles' minima."""
        return self.done if self.succeeded else self.done[:0]

    @property
    def lacks_standby(self) -> int:
        """Hot spares that have no room yet: only a gang that has its place gets any."""
        held = len(self.assumed) + len(self.released) + len(self.bound)
        if self.spec is None or not held or held + self.succeeded < self.spec.min_count:
            return 0
        return max(hot_spares_wanted(self.spec) - len(self.standby), 0)


@dataclass(frozen=True, slots=True)
class GangFacts:
    """A gang's row, without its members' rows."""

    #: See ``GangView``.
    key: GangKey
    #: See ``GangView``.
    spec: GangSpec | None
    #: Packed pod rows.
    members: bytes
    #: See ``GangView``.
    first_bound_at: float | None
    #: See ``GangView``.
    last_member_at: float
    #: See ``GangView``.
    attempts: int
    #: See ``GangView``.
    skips: int
    #: See ``GangView``.
    last_reason: str


def view(facts: GangFacts, pods: PodView) -> GangView:
    """Return a gang with its members by state. O(members), vectorised if ranks are distinct."""
    rows = np.frombuffer(facts.members, dtype=np.int32)
    ranks, state, flags = pods.rank[rows], pods.state[rows], pods.flags[rows]
    priority = pods.priority[rows]
    order = _order(rows, ranks, pods)
    rows, state, flags, priority = rows[order], state[order], flags[order], priority[order]
    spares = state == _STANDBY
    standby = rows[spares]
    if len(standby):
        rows, state, flags, priority = (of[~spares] for of in (rows, state, flags, priority))
    by_state = {each: rows[state == number] for number, each in enumerate(STATES)}
    finished = state == _FINISHED
    counted = priority if finished.all() else priority[~finished]
    standing = by_state[PodState.BOUND]
    leaves = (flags[state == _BOUND] & _TERMINATING) != 0
    by_state[PodState.BOUND] = standing[~leaves]
    done = rows[finished][(flags[finished] & _SUCCEEDED) != 0]
    has_run = bool(len(standing) or finished.any() or facts.first_bound_at)
    spec = _once(facts.spec, has_run=has_run)
    succeeded = 0 if spec is not None and spec.min_is_remaining else len(done)
    needs_role = _needs_role(spec, by_state, done if succeeded else done[:0], pods)
    submitted_at = _submitted_at(facts, rows, pods)
    return GangView(
        key=facts.key,
        spec=spec,
        phase=phase(spec, by_state, succeeded, leaving=int(leaves.sum())),
        priority=int(counted.max()) if len(counted) else 0,
        queue=_queue(facts.spec, rows, pods),
        waiting=by_state[PodState.WAITING],
        blocked=by_state[PodState.BLOCKED],
        assumed=by_state[PodState.ASSUMED],
        released=by_state[PodState.RELEASED],
        bound=by_state[PodState.BOUND],
        leaving=standing[leaves],
        finished=by_state[PodState.FINISHED],
        succeeded=succeeded,
        submitted_at=submitted_at,
        first_bound_at=facts.first_bound_at,
        last_member_at=facts.last_member_at,
        attempts=facts.attempts,
        skips=facts.skips,
        last_reason=facts.last_reason,
        standby=standby,
        done=done,
        written=facts.spec,
        needs_role=needs_role,
    )


def _needs_role(
    spec: GangSpec | None, by_state: dict[PodState, Rows], counted: Rows, pods: PodView
) -> bool:
    """Return whether a role is below its minimum, and a member of it waits."""
    if spec is None or not spec.roles:
        return False
    states = (PodState.ASSUMED, PodState.RELEASED, PodState.BOUND)
    has = pods.role[np.concatenate([*(by_state[state] for state in states), counted])]
    waiting = pods.role[by_state[PodState.WAITING]]
    for role in spec.roles:
        number = pods.roles.find(role.name)
        if np.count_nonzero(has == number) < role.min_count and (waiting == number).any():
            return True
    return False


def _once(spec: GangSpec | None, *, has_run: bool) -> GangSpec | None:
    """Return what a gang asks for; ``has_run``: members stand on nodes, or stood there."""
    if spec is None or not spec.once or not (has_run or spec.has_run):
        return spec
    return replace(spec, min_count=min(spec.min_count, 1), roles=())


def phase(
    spec: GangSpec | None, by_state: dict[PodState, Rows], succeeded: int, *, leaving: int
) -> GangPhase:
    """Derive a gang's phase; the drawing is in ``muster.cluster.specs.gangspec``.

    Members that failed do not count; those that succeeded count as placed. Those that are leaving
    count as before until successors take their place.
    """
    counts = {state: len(rows) for state, rows in by_state.items()}
    present = sum(counts.values())
    members = present + leaving
    placed = counts[PodState.BOUND] + succeeded
    if present == counts[PodState.FINISHED]:
        placed += leaving
    if members and counts[PodState.FINISHED] == members:
        return GangPhase.FINISHED
    if spec is not None and placed >= max(spec.min_count, 1):
        return GangPhase.BOUND
    if counts[PodState.RELEASED] or placed:
        return GangPhase.RELEASED
    if counts[PodState.ASSUMED]:
        return GangPhase.PLANNED
    if spec is not None and members and counts[PodState.WAITING] >= spec.min_count:
        return GangPhase.ADMITTED
    return GangPhase.PENDING


def _order(rows: Rows, ranks: NDArray[np.int32], pods: PodView) -> NDArray[np.intp]:
    """Return the order of the members by (rank, name, uid), as indices."""
    order = np.argsort(ranks, kind="stable")
    along = ranks[order]
    if len(rows) < 2 or bool((along[1:] != along[:-1]).all()):  # noqa: PLR2004  # one is in order
        return order
    keys = [
        (rank, pods.names[row], pods.uids[row], place)
        for place, (rank, row) in enumerate(zip(ranks.tolist(), rows.tolist(), strict=True))
    ]
    keys.sort()
    return np.fromiter((place for *_, place in keys), dtype=np.intp, count=len(keys))


def _queue(spec: GangSpec | None, rows: Rows, pods: PodView) -> str:
    if spec is not None and spec.queue:
        return spec.queue
    return pods.queues[pods.queue[int(rows[0])]] if len(rows) else ""


def _submitted_at(facts: GangFacts, rows: Rows, pods: PodView) -> float:
    if facts.spec is not None and facts.spec.submitted_at > 0:
        return facts.spec.submitted_at
    created = pods.created[rows]
    known = created[created > 0]
    return float(known.min()) if len(known) else facts.last_member_at
