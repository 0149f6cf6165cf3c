"""What queues used on average, looked at every few seconds; only where the configuration says so.

::

    objects ── status as an earlier leader wrote it ──► restore ─┐
    tree ────── every ``NOTE_S`` seconds ─────────────► note ────┴─► averages ──► order, status, API

A replica that does not lead keeps what the leader writes; when it leads it goes on from there.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from extender.config.queueing import UsageConfig
from extender.engine import Engine
from extender.planning.queueturns import QueueTurns
from extender.queues.localuse import NOTE_S, LocalUse, cells
from extender.timeslice import Pace
from muster.apiwire.queues import QueueUse
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueName, ShareFunction
from muster.queueing.admission.counteduse import AverageColumns, goes_by_average
from muster.queueing.admission.userorder import UserOrder
from muster.queueing.averageuse.queuehistory import QueueAverage, QueueHistory
from muster.queueing.averageuse.userhistory import UserHistory, local_name
from muster.workloads.queues.averages import fields
from muster.workloads.queues.muster import OwnQueue
from muster.workloads.queues.sight import AverageSight

_FIRST_USED: Final = "who used less lately goes first"
_FIRST_BORROWED: Final = "of queues that borrow, the one that did so less lately goes first"
_FIRST_PART: Final = "of queues alike, the one that used less of its part lately goes first"
_MOST_SHOWN: Final = 2  # resources in a line


class AverageUse:
    """The averages of one cluster's queues."""

    def __init__(self, engine: Engine, config: UsageConfig, pace: Pace) -> None:
        """``config``: one with a half-life."""
        self._engine = engine
        self._config = config
        self._pace = pace
        self.history = QueueHistory(config.half_life_seconds, config.interval_seconds)
        charges = engine.state.charges
        self.users = UserHistory(config.terms, charges)
        self.local = LocalUse(self.users, engine.clock, config.interval_seconds)
        #: for the order of gangs in queues that go by their users
        self.order = UserOrder(self.users, charges)
        self._was_noted = False
        #: for the order
        self.columns = AverageColumns(self.history)

    def seen(self, found: Any, queue: QueueName | None) -> None:
        """Take over what the status of an object says, if it is later than what is known."""
        if isinstance(found, OwnQueue) and queue is not None:
            said = fields.own_average(found.status)
            if said is not None:
                average = QueueAverage(cells(said.amounts), cells(said.borrowed))
                self.history.restore(queue, average, said.at)
        self.local.seen(found)

    async def run(self) -> None:
        """Look every few seconds, forever."""
        while True:
            await self.note()
            await asyncio.sleep(min(NOTE_S, self._config.interval_seconds))

    async def note(self) -> None:
        """Take note of what every queue uses now."""
        tree = self._engine.state.charges.tree
        nodes = [node for node in tree.nodes() if self.of(node) is not None]
        for node in nodes:
            self.history.note(node, self._engine.clock())
            await self._pace.breathe()
        self.history.keep_only({node.spec.name for node in nodes})
        now = self._engine.clock()
        self.users.note(now)
        self.columns.now = self.order.now = now
        self.local.noted()
        self._was_noted = True

    def of(self, node: QueueNode) -> QueueAverage | None:
        """Return what a queue used on average, ``None``: past use does not count there."""
        if node.parent is None or not goes_by_average(node.spec.name):
            return None
        return self.history.average(node.spec.name, self._engine.clock())

    def sight(self, node: QueueNode | None) -> AverageSight | None:
        """Return the same for the status of its object; ``None``, too: it is not known yet."""
        found = None if node is None or not self._was_noted else self.of(node)
        return (
            None
            if found is None
            else AverageSight(found.used, found.borrowed, self._config.interval_seconds)
        )

    def uses(self, node: QueueNode) -> tuple[QueueUse, ...]:
        """Return what those used who name a queue; nothing where that orders nothing."""
        if not node.spec.goes_by_users:
            return ()
        charges = self._engine.state.charges
        users = {local_name(user): user for user, _ in charges.charged(node.spec.name)}
        found = [
            QueueUse(
                name,
                charges.aliases.weight(user) / WEIGHT_ONE,
                fields.texts(self.local.average(name)),
                self.order.key(user, node.spec.name),
            )
            for name, user in sorted(users.items())
        ]
        return tuple(sorted(found, key=lambda use: use.key))

    def lines(self, user: QueueUser) -> tuple[str, ...]:
        """Return what past use means for a gang that waits; nothing where it means nothing."""
        charges = self._engine.state.charges
        queue = charges.queue_of(user)
        node = None if queue is None else charges.tree.find(queue)
        if node is None or queue is None:
            return ()
        if node.spec.goes_by_users:
            name = local_name(user)
            used = _shown(self.local.average(name))
            return (f"LocalQueue {name} used {used} on average: in queue {queue} {_FIRST_USED}",)
        past, shares = self.of(node), _ordered_by(node)
        if past is None or shares is ShareFunction.PRIORITY:
            return ()
        used, borrowed = _shown(past.used), _shown(past.borrowed)
        who = _FIRST_BORROWED if shares is ShareFunction.BORROWED else _FIRST_PART
        return (f"queue {queue} used {used} on average and borrowed {borrowed}: {who}",)

    @property
    def turn(self) -> int:
        """A number that changes when statuses may be due."""
        return int(self._engine.clock() / self._config.interval_seconds)


def turns_of(engine: Engine, averages: AverageUse | None) -> QueueTurns:
    """Return the planner's view of queues, with past use where it counts."""
    if averages is None:
        return QueueTurns(engine)
    return QueueTurns(engine, averages.columns, averages.order)


def _ordered_by(node: QueueNode) -> ShareFunction:
    """Return what orders a queue beside its siblings."""
    at = node.parent
    while at is not None:
        if at.spec.shares is not None:
            return at.spec.shares
        at = at.parent
    return ShareFunction.BORROWED


def _shown(average: Mapping[Cell, float]) -> str:
    """Return an average for people: accelerators, where there are any."""
    found = fields.texts(average)
    named = [name for name in found if "/" in name] or list(found)
    return ", ".join(f"{found[name]} {name}" for name in named[:_MOST_SHOWN]) or "nothing"
