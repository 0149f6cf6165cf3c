"""The planner's view of queues: who is next, and what a queue lets a gang take now.

::

    gangs to be planned ──► WaitingLine ──► one after the other ──► question: refusal, most members
                              ▲                                  │
                              └── charged by the state ◄── held ─┘

Not asked where there are no queues: the order is ``muster.queueing.order`` then.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from extender.engine import Engine
from muster.cluster.events import CapacityMeasured
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.matching import holds
from muster.cluster.tables.gangview import GangView
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.waitingline import WaitingLine, UnqueuedGang
from muster.queueing.admission.memberrequests import MemberRequests, requests_of
from muster.queueing.admission.precedence import by_share
from muster.queueing.admission.refusal import before, not_for, refusal, stopped_name, unknown
from muster.queueing.admission.turn import Turns
from muster.queueing.order import begun


@dataclass(frozen=True, slots=True)
class Allowance:
    """What its queue lets a gang take now."""

    #: Why it may take nothing, "" where its minimum may be placed.
    refusal: str = ""
    #: How many of its waiting members may be placed, ``None``: all.
    most: int | None = None


FREE = Allowance()


class QueueTurns:
    """Asks the queues of the state; holds what is needed to ask fast."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._turns: Turns | None = None
        self._line: WaitingLine | None = None
        self._measured = -1

    def open_line(
        self, candidates: Iterable[GangView], parked: Iterable[GangView], snapshot: Snapshot
    ) -> WaitingLine:
        """Return the gangs of a cycle in their order.

        ``parked``: gangs that wait for room; they keep their place in strict queues.
        """
        charges = self._engine.state.charges
        self._measure(snapshot)
        if self._turns is None:
            self._turns = Turns(charges.tree, by_share)
        applicants: list[Applicant] = []
        unqueued: list[UnqueuedGang] = []
        for view in candidates:
            one = self._applicant(view, snapshot)
            if one is None:
                unqueued.append(UnqueuedGang(view.key, _rank(view)))
            else:
                applicants.append(one)
        self._line = WaitingLine(charges, self._turns, applicants, unqueued, self._keep(parked, snapshot))
        return self._line

    def close_line(self) -> None:
        """Forget the gangs of a cycle that is over."""
        self._line = None

    def allowance(self, key: GangKey) -> Allowance:
        """Return what its queue lets a gang take now."""
        charges = self._engine.state.charges
        snapshot = self._engine.state.snapshot()
        view = snapshot.gang(key)
        if view is None or view.spec is None or not len(view.waiting):
            return FREE
        user = self._engine.state.queue_user(view)
        queue = charges.queue_of(user)
        if queue is None:
            if not user.text:
                return FREE
            return Allowance(unknown(user.text, user.namespace, charges.aliases.texts(user)))
        asked = requests_of(view, snapshot)
        refused = self._barred(user, queue, snapshot) or refusal(
            charges, queue, asked.of_first(max(asked.minimum, 1))
        )
        if not refused and self._line is not None:
            first = self._line.in_front(key)
            refused = "" if first is None else before(first, queue)
        return Allowance(refused) if refused else Allowance("", self._most(key, queue, asked))

    def _barred(self, user: QueueUser, queue: QueueName, snapshot: Snapshot) -> str:
        """Return why gangs of a namespace may not use a queue, "" where they may."""
        if not self._engine.state.charges.aliases.is_open(user):
            return stopped_name(user.text, queue)
        labels = snapshot.namespaces.get(user.namespace, {})
        required = snapshot.queues[queue].namespaces
        if not all(holds(each, labels.get(each.key)) for each in required):
            return not_for(user.namespace, queue)
        return ""

    def _most(self, key: GangKey, queue: QueueName, asked: MemberRequests) -> int | None:
        """Return how many waiting members may be placed; at least the minimum."""
        room = None if self._line is None else self._line.room_for_extras(key)
        if room is None:
            return None
        by_name = {cell.resource: amount for cell, amount in room.items()}
        counted = {
            cell.resource for cell in self._engine.state.charges.request(queue, _ones(asked))
        }
        free = {name: by_name.get(name, 0) for name in counted} | {
            name: 1 << 62 for name in asked.resources if name not in counted
        }
        most = max(asked.within(free), asked.minimum, 1)
        return None if most >= len(asked.amounts) else most

    def _applicant(self, view: GangView, snapshot: Snapshot) -> Applicant | None:
        """Return a gang that waits for quota, ``None``: no queue counts it."""
        state = self._engine.state
        queue = state.charges.queue_of(state.queue_user(view))
        if queue is None or not len(view.waiting) or view.spec is None:
            return None
        asked = requests_of(view, snapshot)
        return Applicant(
            gang=view.key,
            queue=queue,
            request=state.charges.request(queue, asked.of_first(max(asked.minimum, 1))),
            priority=view.priority,
            since=view.submitted_at,
            is_begun=begun(view),
            is_extra=asked.minimum == 0,
        )

    def _keep(self, parked: Iterable[GangView], snapshot: Snapshot) -> Sequence[Applicant]:
        tree = self._engine.state.charges.tree
        if not any(node.spec.is_strict for node in tree.nodes()):
            return ()
        found = (self._applicant(view, snapshot) for view in parked)
        kept = [(one, tree.find(one.queue)) for one in found if one is not None]
        return [one for one, node in kept if node is not None and node.spec.is_strict]

    def _measure(self, snapshot: Snapshot) -> None:
        """Have roots that stand for the cluster know what its nodes have."""
        changes = self._engine.state.node_changes
        if changes != self._measured:
            self._measured = changes
            self._engine.apply(CapacityMeasured(_totals(snapshot)))


def _totals(snapshot: Snapshot) -> Mapping[str, int]:
    nodes = snapshot.nodes
    pairs = zip(nodes.resources, nodes.allocatable_columns, strict=True)
    return {name: int(column[nodes.alive].sum()) for name, column in pairs}


def _ones(asked: MemberRequests) -> dict[str, int]:
    return dict.fromkeys(asked.resources, 1)


def _rank(view: GangView) -> tuple[bool, bool, int, float, GangKey]:
    lacks = bool(view.lacks_standby) and not len(view.waiting)
    return (not begun(view) and not lacks, False, -view.priority, view.submitted_at, view.key)
