"""What each queue has and uses, and who waits in it.

Sums come from the tree; gangs are those that the planner lists: complete ones that wait for quota
or for room.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from extender.planning.worklist import WorkList
from extender.queues.averageuse import AverageUse
from muster.apiwire.queues import CellUse, QueueDetail, QueueRow, WaitingGang
from muster.cluster.ids import GangKey
from muster.cluster.quota.availability import available
from muster.cluster.quota.cells import UNLIMITED, Cell
from muster.cluster.quota.charges import PODS
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName
from muster.cluster.resumable import run
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import Wait
from muster.queueing.admission.applicant import rank_of
from muster.queueing.admission.refusal import closed
from muster.queueing.averageuse.queuehistory import QueueAverage
from muster.queueing.backfill import promisetext
from muster.queueing.backfill.promise import Promise
from muster.workloads.queues.amounts import written
from muster.workloads.queues.averages.quantities import text
from muster.workloads.queues.sight import whole_uses


@dataclass(frozen=True, slots=True)
class QueueSummaries:
    """Reads the state and the planner's list; keeps nothing."""

    state: ClusterState
    worklist: WorkList
    #: returns the promise of a gang
    promised: Callable[[GangKey], Promise | None]
    #: what queues used on average; ``None``: past use does not count
    averages: AverageUse | None = None

    def rows(self) -> Iterator[QueueRow]:
        """Yield every queue, each behind the one above it."""
        waiting, pods, used = self.waiting(), self._pods(), run(whole_uses(self.state.charges.tree))
        roots = sorted(
            (node for node in self.state.charges.tree.nodes() if node.parent is None),
            key=lambda node: node.spec.name,
        )
        stack = [(node, 0) for node in reversed(roots)]
        while stack:
            node, depth = stack.pop()
            name = node.spec.name
            yield self._row(
                node, depth, waiting.get(name, []), pods.get(name, 0), used.get(name, {})
            )
            below = sorted(node.children.items(), reverse=True)
            stack += [(child, depth + 1) for _, child in below]

    def detail(self, name: QueueName) -> QueueDetail | None:
        """Return one queue and who waits in it, ``None``: there is no such queue."""
        node = self.state.charges.tree.find(name)
        if node is None:
            return None
        depth, above = 0, node.parent
        while above is not None:
            depth, above = depth + 1, above.parent
        waiting = self.waiting().get(name, [])
        used = run(whole_uses(self.state.charges.tree)).get(name, {})
        row = self._row(node, depth, waiting, self._pods().get(name, 0), used)
        uses = () if self.averages is None else self.averages.uses(node)
        return QueueDetail(row, tuple(self._gangs(waiting)), uses)

    def find(self, text: str) -> list[QueueName]:
        """Return the queues that a name may mean: the whole name, or its last part."""
        names = [node.spec.name for node in self.state.charges.tree.nodes()]
        if text in names:
            return [QueueName(text)]
        return [name for name in names if name.rsplit("/", 1)[-1] == text]

    def waiting(self) -> dict[QueueName, list[GangView]]:
        """Return the gangs that wait in each queue, first to last."""
        found: defaultdict[QueueName, list[GangView]] = defaultdict(list)
        for key in self.worklist.todo | self.worklist.parked:
            view = self.worklist.views.get(key) or self.state.gang(key)
            queue = None if view is None else self._queue(view)
            if view is not None and queue is not None and len(view.waiting):
                found[queue].append(view)
        return {queue: self._in_order(queue, views) for queue, views in found.items()}

    def past_use(self, view: GangView) -> tuple[str, ...]:
        """Return what past use means for a gang that waits, in words."""
        if self.averages is None:
            return ()
        return self.averages.lines(self.state.queue_user(view))

    def _in_order(self, queue: QueueName, views: list[GangView]) -> list[GangView]:
        """Return the gangs of a queue, first to last."""
        order = None if self.averages is None else self.averages.order
        if order is None or not order.goes_by_users(queue):
            return sorted(views, key=rank_of)
        users = {view.key: self.state.queue_user(view) for view in views}
        keys = {user: order.key(user, queue) for user in set(users.values())}

        def place(view: GangView) -> tuple[object, ...]:
            not_begun, is_extra, *rest = rank_of(view)
            return (not_begun, is_extra, keys[users[view.key]], *rest)

        return sorted(views, key=place)

    def _queue(self, view: GangView) -> QueueName | None:
        return self.state.charges.queue_of(self.state.queue_user(view))

    def _pods(self) -> dict[QueueName, int]:
        found: defaultdict[QueueName, int] = defaultdict(int)
        for account in self.state.charges.accounts().values():
            if account.queue is not None:
                pods = (amount for use, amount in account.used.items() if use.resource == PODS)
                found[account.queue] += sum(pods)
        return found

    def _gangs(self, views: list[GangView]) -> Iterator[WaitingGang]:
        for place, view in enumerate(views, 1):
            promise = self.promised(view.key)
            yield WaitingGang(
                gang=view.key,
                place=place,
                priority=view.priority,
                submitted_at=view.submitted_at,
                members=len(view.waiting),
                reason=self._reason(view.key),
                starts_at=0.0 if promise is None else promise.start,
                first_promised=0.0 if promise is None else promise.first_start,
                start="" if promise is None else promisetext.text_of(promise),
            )

    def _reason(self, key: GangKey) -> str:
        """Return why a gang waits, with numbers where it waits for quota."""
        decision = self.worklist.decisions.get(key)
        if isinstance(decision, Wait) and decision.explanation.cause:
            return decision.explanation.cause
        return self.worklist.reason(key) or "its turn has not come"

    def _row(
        self,
        node: QueueNode,
        depth: int,
        waiting: list[GangView],
        pods: int,
        used: Mapping[Cell, int],
    ) -> QueueRow:
        spec = node.spec
        return QueueRow(
            queue=spec.name,
            parent=spec.parent or "",
            depth=depth,
            weight=spec.weight / WEIGHT_ONE,
            strict=spec.is_strict,
            problem=self.state.charges.tree.problem(spec.name) or closed(node),
            pods=pods,
            waiting=len(waiting),
            first=waiting[0].key if waiting else "",
            uses=tuple(self._uses(node, used)),
        )

    def _uses(self, node: QueueNode, used: Mapping[Cell, int]) -> Iterator[CellUse]:
        past = None if self.averages is None else self.averages.of(node)
        for cell in sorted({*node.cells(), *(past.used if past is not None else ())}):
            yield _use(node, cell, used.get(cell, 0), past)


def _use(node: QueueNode, cell: Cell, used: int, past: QueueAverage | None) -> CellUse:
    quota, entitled = node.quota(cell), node.entitled(cell)
    return CellUse(
        resource=cell.resource,
        flavor=cell.flavor,
        used=written(cell.resource, used),
        entitled=_or_none(cell, entitled),
        borrowed=written(cell.resource, node.borrowed(cell)),
        limit=_or_none(cell, quota.limit),
        available=_or_none(cell, max(available(node, cell), 0)),
        average=_average(cell, None if past is None else past.used),
        average_borrowed=_average(cell, None if past is None else past.borrowed),
    )


def _average(cell: Cell, averages: Mapping[Cell, float] | None) -> str | None:
    return None if averages is None else text(cell.resource, averages.get(cell, 0.0))


def _or_none(cell: Cell, amount: int) -> str | None:
    return None if amount >= UNLIMITED else written(cell.resource, amount)
