"""The planner's view of queues: who is next, and what a queue lets a gang take now.

::

    gangs to be planned ──► WaitingLine ──► one after the other ──► question: refusal, most members
                              ▲                                  │
                              └── charged by the state ◄── held ─┘

Not asked where there are no queues: the order is ``muster.queueing.order`` then.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from extender.engine import Engine
from muster.cluster.events import CapacityMeasured
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.availability import borrows, lack
from muster.cluster.quota.cells import UNLIMITED, Cell
from muster.cluster.quota.flavors import Choice, FlavorNodes, Groups, choices, nodes_of
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.placement.rules.refusednodes import other_flavors
from muster.queueing.admission.applicant import Applicant
from muster.queueing.admission.counteduse import AverageColumns
from muster.queueing.admission.fairshares import DIVISIONS, GivenShares
from muster.queueing.admission.firmgangs import firm_excess
from muster.queueing.admission.memberrequests import MemberRequests, requests_of
from muster.queueing.admission.refusal import barred, before, refusal, unknown
from muster.queueing.admission.turn import Turns
from muster.queueing.admission.userorder import UserOrder
from muster.queueing.admission.waitingline import UnqueuedGang, WaitingLine
from muster.queueing.backfill.promise import StartClaim
from muster.queueing.order import begun, waits_for_extras


@dataclass(frozen=True, slots=True)
class Allowance:
    """What its queue lets a gang take now."""

    #: Why it may take nothing, "" where its minimum may be placed.
    refusal: str = ""
    #: How many of its waiting members may be placed, ``None``: all.
    most: int | None = None
    #: The nodes that it may have; empty: all.
    flavors: tuple[FlavorNodes, ...] = ()


FREE = Allowance()
NONE: Final = np.zeros(0, np.int32)


class PromisedStarts(Protocol):
    """What the order of gangs asks those who promise starts."""

    def since(self, view: GangView, root: QueueName, share: float) -> float:
        """Return what orders a gang among those of its queue and priority; the least goes first.

        ``root``: of its queue; ``share``: of the nodes, which it takes.
        """

    def lacks(self, root: QueueName, priority: int) -> bool:
        """Return whether nobody below a root has a promise, and one of a priority may be tried."""


class QueueTurns:
    """Asks the queues of the state; holds what is needed to ask fast."""

    def __init__(
        self,
        engine: Engine,
        averages: AverageColumns | None = None,
        users: UserOrder | None = None,
    ) -> None:
        """``averages``, ``users``: of past use, where it counts in the order."""
        self._engine = engine
        self._averages = averages
        self._users = users
        self._turns: Turns | None = None
        self._line: WaitingLine | None = None
        self._measured = -1
        #: what the nodes have, by resource
        self._whole: Mapping[str, int] = {}
        self._starts: PromisedStarts | None = None
        #: by gang of the line, its view and what its members take
        self._known: dict[GangKey, tuple[GangView, MemberRequests]] = {}
        #: gangs of the line that may have one of several flavors
        self._choosing: set[GangKey] = set()

    def open_line(
        self,
        candidates: Iterable[GangView],
        parked: Iterable[GangView],
        snapshot: Snapshot,
        starts: PromisedStarts,
    ) -> Steps[WaitingLine]:
        """Return the gangs of a cycle in their order, in slices.

        ``parked``: gangs that wait for room; they keep their place in strict queues, and count in
        what queues ask for.
        """
        self._starts = starts
        charges = self._engine.state.charges
        self._measure(snapshot)
        self._choosing.clear()
        if self._turns is None:
            self._turns = Turns(charges.tree, averages=self._averages, users=self._users)
        applicants: list[Applicant] = []
        unqueued: list[UnqueuedGang] = []
        known, self._known = self._known, {}
        for view in candidates:
            one = self._applicant(view, snapshot, known)
            if one is None:
                unqueued.append(UnqueuedGang(view.key, _rank(view)))
            else:
                applicants.append(one)
            yield
        kept: list[Applicant] = []
        others: list[Applicant] = []
        for view in parked if self._asks_the_parked() else ():
            one = self._applicant(view, snapshot, known)
            if one is not None:
                (kept if self._is_strict(one.queue) else others).append(one)
            yield
        yield from self._turns.refresh()
        self._line = WaitingLine(
            charges, self._turns, applicants, unqueued, kept, self._lacks_promise, others
        )
        return self._line

    def has_choice(self, key: GangKey) -> bool:
        """Return whether another flavor may admit a gang of the line that it was not offered."""
        return key in self._choosing

    def allowances(self, key: GangKey) -> list[Allowance]:
        """Return what its queue lets a gang take now, flavor by flavor in the order of trying.

        Where no flavor admits it there is one: the refusal of the first.
        """
        charges = self._engine.state.charges
        snapshot = self._engine.state.snapshot()
        view = snapshot.gang(key)
        if view is None or view.spec is None or not len(view.waiting):
            return [FREE]
        user = self._engine.state.queue_user(view)
        queue = charges.queue_of(user)
        if queue is None:
            if not user.text:
                return [FREE]
            return [Allowance(unknown(user.text, user.namespace, charges.aliases.texts(user)))]
        if _is_elsewhere(queue, snapshot):
            return [FREE]
        barred = self._barred(user, queue, snapshot)
        if barred:
            return [Allowance(barred)]
        return self._by_flavor(view, queue, snapshot)

    def _by_flavor(self, view: GangView, queue: QueueName, snapshot: Snapshot) -> list[Allowance]:
        charges, asked = self._engine.state.charges, self._asked(view, snapshot, self._known)
        groups, minimum = charges.groups(queue), asked.of_first(max(asked.minimum, 1))
        refusals, found = [], []
        for choice in _open_choices(view, groups, snapshot):
            refused = (
                refusal(charges, queue, minimum, choice)
                or self._over_quota(view, queue, snapshot, minimum)
                or self._behind(view.key, queue)
            )
            refusals.append(refused)
            if not refused:
                most = self._most(view.key, queue, asked, choice)
                found.append(Allowance("", most, nodes_of(groups, choice)))
        return found or [Allowance(refusals[0], None, nodes_of(groups, next(choices(groups))))]

    def _over_quota(
        self, view: GangView, queue: QueueName, snapshot: Snapshot, minimum: Mapping[str, int]
    ) -> str:
        """Return why a gang that never gives way must wait, "" where it need not."""
        charges = self._engine.state.charges
        node = charges.tree.find(queue)
        if node is None or not node.spec.preemption.keeps_firm_within:
            return ""
        cells = charges.request(queue, minimum)
        over = firm_excess(view, snapshot, charges, node, cells)
        return "" if over is None else str(over)

    def shares(self) -> GivenShares | None:
        """Return what each queue gets of what is divided, ``None`` before the first cycle."""
        return None if self._turns is None else self._turns.shares()

    def is_behind(self, key: GangKey, queue: QueueName | None) -> bool:
        """Return whether a queue is strict and has another gang first, however much is free."""
        if self._line is None or queue is None or not self._is_strict(queue):
            return False
        return self._line.first_of(queue) not in (None, key)

    def _behind(self, key: GangKey, queue: QueueName) -> str:
        first = None if self._line is None else self._line.in_front(key)
        return "" if first is None else before(first, queue)

    def _barred(self, user: QueueUser, queue: QueueName, snapshot: Snapshot) -> str:
        """Return why gangs of a namespace may not use a queue, "" where they may."""
        aliases = self._engine.state.charges.aliases
        labels = snapshot.namespaces.get(user.namespace, {})
        return barred(user, queue, aliases, snapshot.queues[queue].namespaces, labels)

    def _most(
        self, key: GangKey, queue: QueueName, asked: MemberRequests, choice: Choice
    ) -> int | None:
        """Return how many waiting members may be placed; at least the minimum."""
        ones = dict.fromkeys(asked.resources, 1)
        cells = self._engine.state.charges.request(queue, ones, choice)
        room = None if self._line is None else self._line.room_for_extras(key, cells)
        if room is None:
            return None
        free = dict.fromkeys(asked.resources, UNLIMITED)
        free |= {cell.resource: amount for cell, amount in room.items()}
        most = max(asked.within(free), asked.minimum, 1)
        return None if most >= len(asked.amounts) else most

    def _asked(
        self,
        view: GangView,
        snapshot: Snapshot,
        known: Mapping[GangKey, tuple[GangView, MemberRequests]],
    ) -> MemberRequests:
        """Return what a gang's members take; it is computed once per change of the gang.

        A view may be older or younger than the snapshot, which has other rows then.
        """
        before = known.get(view.key)
        if before and before[0] is view:
            self._known[view.key] = before
            return before[1]
        found = snapshot.gang(view.key)
        if found is None:
            return requests_of(replace(view, waiting=NONE), snapshot)
        asked = requests_of(found, snapshot)
        self._known[view.key] = view, asked
        return asked

    def _applicant(
        self,
        view: GangView,
        snapshot: Snapshot,
        known: Mapping[GangKey, tuple[GangView, MemberRequests]],
    ) -> Applicant | None:
        """Return a gang that waits for quota, ``None``: no queue of ours admits it."""
        state = self._engine.state
        queue = state.charges.queue_of(state.queue_user(view))
        if queue is None or not len(view.waiting) or view.spec is None:
            return None
        if _is_elsewhere(queue, snapshot):
            return None
        goes_by_users = self._users is not None and self._users.goes_by_users(queue)
        asked = self._asked(view, snapshot, known)
        if len(list(choices(state.charges.groups(queue)))) > 1:
            self._choosing.add(view.key)
        return Applicant(
            gang=view.key,
            queue=queue,
            request=self._request(queue, asked.of_first(max(asked.minimum, 1))),
            priority=view.priority,
            since=self._ordered_by(view, queue, asked),
            is_begun=begun(view),
            is_extra=waits_for_extras(view),
            user=state.queue_user(view) if goes_by_users else None,
        )

    def claim(self, view: GangView) -> StartClaim | None:
        """Return with what right a gang asks for a promised start, ``None``: others admit it."""
        state = self._engine.state
        queue = state.charges.queue_of(state.queue_user(view))
        node = None if queue is None else state.charges.tree.find(queue)
        extra = waits_for_extras(view)
        if queue is None or node is None:
            return StartClaim(view.key, priority=view.priority, is_entitled=False, is_extra=extra)
        snapshot = state.snapshot()
        if _is_elsewhere(queue, snapshot):
            return None
        asked = self._asked(view, snapshot, self._known)
        request = self._request(queue, asked.of_first(max(asked.minimum, 1)))
        root = node.root.spec.name
        entitled = not borrows(node, request)
        return StartClaim(
            view.key, queue, root, request, view.priority, is_entitled=entitled, is_extra=extra
        )

    def _ordered_by(self, view: GangView, queue: QueueName, asked: MemberRequests) -> float:
        """Return what orders gangs of one queue and priority: by default their age."""
        root = self._root(queue)
        if root is None or self._starts is None:
            return view.submitted_at
        return self._starts.since(view, root, self._share(asked))

    def _root(self, queue: QueueName) -> QueueName | None:
        node = self._engine.state.charges.tree.find(queue)
        return None if node is None else node.root.spec.name

    def _lacks_promise(self, one: Applicant) -> bool:
        root = self._root(one.queue)
        if root is None or self._starts is None:
            return False
        return self._starts.lacks(root, one.priority)

    def _share(self, asked: MemberRequests) -> float:
        """Return the largest share that a gang's minimum takes of anything that the nodes have."""
        amounts = asked.of_first(max(asked.minimum, 1))
        shares = (amount / self._whole.get(name, amount) for name, amount in amounts.items())
        return max(shares, default=0.0)

    def _request(self, queue: QueueName, amounts: Mapping[str, int]) -> Mapping[Cell, int]:
        """Return amounts by cell: of the first flavors of which the queue has enough now."""
        charges = self._engine.state.charges
        node, groups = charges.tree.find(queue), charges.groups(queue)
        asked = [charges.request(queue, amounts, choice) for choice in choices(groups)]
        fits = (cells for cells in asked if node is not None and lack(node, cells) is None)
        return next(fits, asked[0])

    def _asks_the_parked(self) -> bool:
        """Return whether gangs that wait for room decide anything: in strict queues, in shares."""
        return any(
            node.spec.is_strict or node.spec.shares in DIVISIONS
            for node in self._engine.state.charges.tree.nodes()
        )

    def _is_strict(self, queue: QueueName) -> bool:
        node = self._engine.state.charges.tree.find(queue)
        return node is not None and node.spec.is_strict

    def _measure(self, snapshot: Snapshot) -> None:
        """Have roots that stand for the cluster know what its nodes have."""
        changes = self._engine.state.node_changes
        if changes != self._measured:
            self._measured, self._whole = changes, node_totals(snapshot)
            self._engine.apply(CapacityMeasured(self._whole))


def _is_elsewhere(queue: QueueName, snapshot: Snapshot) -> bool:
    """Return whether others admit a queue's gangs; the queue may be younger than the snapshot."""
    found = snapshot.queues.get(queue)
    return found is not None and found.is_elsewhere


def _open_choices(view: GangView, groups: Groups, snapshot: Snapshot) -> list[Choice]:
    """Return the flavors that a gang may have: those of its members that have a place already."""
    every = list(choices(groups))
    placed = np.concatenate([view.bound, view.released, view.assumed])
    if len(every) == 1 or not len(placed):
        return every
    node = int(snapshot.pods.node[int(placed[0])])
    masks = (other_flavors(snapshot, nodes_of(groups, choice)) for choice in every)
    return [
        choice
        for choice, others in zip(every, masks, strict=True)
        if others is None or not others[node]
    ] or every


def node_totals(snapshot: Snapshot) -> Mapping[str, int]:
    """Return what all nodes have, by resource."""
    nodes = snapshot.nodes
    pairs = zip(nodes.resources, nodes.allocatable_columns, strict=True)
    return {name: int(column[nodes.alive].sum()) for name, column in pairs}


def _rank(view: GangView) -> tuple[bool, bool, int, float, GangKey]:
    lacks = bool(view.lacks_standby) and not len(view.waiting)
    return (not begun(view) and not lacks, False, -view.priority, view.submitted_at, view.key)
