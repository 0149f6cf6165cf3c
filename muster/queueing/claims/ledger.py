"""Who holds quota, and what is promised to whom, in two trees of the same queues.

::

    held      what claims hold, those included that were evicted and have not left yet
    promised  what they hold without those that were evicted, and with those who wait for their room

A claim that evicts others is *promised* what it asks for: nobody else may take that meanwhile. It
is given quota once ``held`` has room, so no limit is exceeded at any time. Others need room in
both trees. With nobody evicted the trees are equal.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from muster.cluster.claims import ClaimKey, Grant
from muster.cluster.errors import InvariantViolation
from muster.cluster.events import QueueGone, QueueUpserted
from muster.cluster.quota.aliases import QueueAliases, QueueUser
from muster.cluster.quota.audit import audit
from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.charges import QueueCharges
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import QuotaTree


@dataclass(slots=True, eq=False)
class Holding:
    """What one claim holds."""

    #: The claim.
    key: ClaimKey
    #: The UID of its object.
    uid: str
    #: The queue that is charged, whether it exists or not.
    queue: QueueName
    #: How much of each cell.
    cells: Amounts
    #: Who names the queue.
    user: QueueUser
    #: The claim's priority.
    priority: int
    #: When the claim was made, in seconds since the epoch.
    since: float
    #: When it was given quota.
    granted_at: float
    #: Whether it was evicted.
    is_leaving: bool = False

    def is_same(self, other: "Holding") -> bool:
        """Return whether both are charged alike: the same queue, amounts and user."""
        mine = (self.queue, dict(self.cells), self.user)
        return mine == (other.queue, dict(other.cells), other.user)


@dataclass(slots=True, eq=False)
class RoomPromise:
    """Room that a claim waits for."""

    #: What the claim will hold.
    grant: Grant
    #: How much of each cell that is.
    cells: Amounts
    #: Who names the queue.
    user: QueueUser
    #: The evicted claims that have not left yet.
    awaited: set[ClaimKey] = field(default_factory=set)

    @property
    def queue(self) -> QueueName:
        """The queue that is charged."""
        return self.grant.queue


class ClaimLedger:
    """Everything that is held and promised."""

    def __init__(self) -> None:
        """Begin without queues."""
        #: the queues, how they are named and which flavors they have; its tree is ``held``
        self.charges = QueueCharges()
        self.held = self.charges.tree
        self.promised = QuotaTree()
        self._holdings: dict[ClaimKey, Holding] = {}
        self._by_queue: defaultdict[QueueName, dict[ClaimKey, Holding]] = defaultdict(dict)
        self._promises: dict[ClaimKey, RoomPromise] = {}
        #: what those hold or are promised who name a queue
        self._by_user: defaultdict[QueueName, defaultdict[QueueUser, Counter[Cell]]] = defaultdict(
            lambda: defaultdict(Counter)
        )

    @property
    def tree(self) -> QuotaTree:
        """The queues, with what claims hold."""
        return self.held

    @property
    def aliases(self) -> QueueAliases:
        """How the queues are named."""
        return self.charges.aliases

    def charged(self, queue: QueueName) -> Iterator[tuple[QueueUser, Mapping[Cell, int]]]:
        """Yield those who name a queue, with what they hold of it or are promised."""
        yield from self._by_user.get(queue, {}).items()

    # --- queues -----------------------------------------------------------------------------

    def take(self, event: QueueUpserted | QueueGone) -> None:
        """Apply a change of a queue. What claims hold of it outlives the queue."""
        if isinstance(event, QueueGone):
            self.charges.remove(event.name)
            self.promised.remove(event.name)
            return
        name = event.spec.name
        is_new = self.held.find(name) is None
        self.charges.put(event.spec, event.spellings, event.groups)
        self.promised.put(event.spec)
        if is_new:
            self._charge_again(name)

    def _charge_again(self, name: QueueName) -> None:
        for one in self._by_queue.get(name, {}).values():
            self.held.charge(name, one.cells)
            if not one.is_leaving:
                self.promised.charge(name, one.cells)
        for promise in self._promises.values():
            if promise.queue == name:
                self.promised.charge(name, promise.cells)

    # --- holdings ---------------------------------------------------------------------------

    def holding(self, key: ClaimKey) -> Holding | None:
        """Return what a claim holds, ``None``: nothing."""
        return self._holdings.get(key)

    def holdings(self, queue: QueueName) -> Iterable[Holding]:
        """Return what claims hold of one queue."""
        return self._by_queue.get(queue, {}).values()

    def hold(self, one: Holding) -> None:
        """Charge a claim; one that held something holds this instead."""
        self.free(one.key)
        self._holdings[one.key] = self._by_queue[one.queue][one.key] = one
        self._by_user[one.queue][one.user].update(one.cells)
        _charge(self.held, one.queue, one.cells)
        if not one.is_leaving:
            _charge(self.promised, one.queue, one.cells)

    def leave(self, key: ClaimKey) -> None:
        """Note that a claim was evicted: it holds its quota, and others are promised that."""
        one = self._holdings[key]
        if not one.is_leaving:
            one.is_leaving = True
            _give_back(self.promised, one.queue, one.cells)

    def free(self, key: ClaimKey) -> Holding | None:
        """Give back what a claim holds; returns it, ``None``: it held nothing."""
        one = self._holdings.pop(key, None)
        if one is None:
            return None
        del self._by_queue[one.queue][key]
        self._less(one)
        _give_back(self.held, one.queue, one.cells)
        if not one.is_leaving:
            _give_back(self.promised, one.queue, one.cells)
        for promise in self._promises.values():
            promise.awaited.discard(key)
        return one

    # --- promises ---------------------------------------------------------------------------

    def promises(self) -> Mapping[ClaimKey, RoomPromise]:
        """Return who waits for room that others leave."""
        return self._promises

    def promise(self, key: ClaimKey, promise: RoomPromise) -> None:
        """Keep room for a claim that has none yet."""
        self.withdraw(key)
        self._promises[key] = promise
        self._by_user[promise.queue][promise.user].update(promise.cells)
        _charge(self.promised, promise.queue, promise.cells)

    def withdraw(self, key: ClaimKey) -> None:
        """Keep no room for a claim."""
        promise = self._promises.pop(key, None)
        if promise is not None:
            self._less(promise)
            _give_back(self.promised, promise.queue, promise.cells)

    def _less(self, one: Holding | RoomPromise) -> None:
        """Take what somebody held or was promised off what its user has."""
        users = self._by_user[one.queue]
        left = users[one.user]
        left.subtract(one.cells)
        if not any(left.values()):
            del users[one.user]

    # --- checks -----------------------------------------------------------------------------

    def validate(self) -> None:
        """Compare both trees with the claims; raises ``InvariantViolation``."""
        held: defaultdict[QueueName, Counter[Cell]] = defaultdict(Counter)
        promised: defaultdict[QueueName, Counter[Cell]] = defaultdict(Counter)
        users: defaultdict[tuple[QueueName, QueueUser], Counter[Cell]] = defaultdict(Counter)
        all_: list[Holding | RoomPromise] = [*self._holdings.values(), *self._promises.values()]
        for each in all_:
            users[each.queue, each.user].update(each.cells)
        for key, one in self._holdings.items():
            if self._by_queue[one.queue].get(key) is not one:
                raise InvariantViolation(f"claim {key} is not among those of queue {one.queue}")
            held[one.queue].update(one.cells)
            if not one.is_leaving:
                promised[one.queue].update(one.cells)
        for promise in self._promises.values():
            promised[promise.queue].update(promise.cells)
        have = {(queue, user): c for queue, of in self._by_user.items() for user, c in of.items()}
        for (queue, user), cells in {**have, **users}.items():
            if have.get((queue, user), Counter()) != users.get((queue, user), Counter()):
                raise InvariantViolation(f"queue {queue}: {user} does not have {dict(cells)}")
        audit(self.held, held)
        audit(self.promised, promised)


def _charge(tree: QuotaTree, queue: QueueName, cells: Amounts) -> None:
    if tree.find(queue) is not None:
        tree.charge(queue, cells)


def _give_back(tree: QuotaTree, queue: QueueName, cells: Amounts) -> None:
    if tree.find(queue) is not None:
        tree.give_back(queue, cells)
