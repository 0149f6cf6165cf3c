"""What is charged to whom: the bills of pods, added up for those who name a queue.

::

    pod ──► bill: (user, requests)      equal pods of one user have one bill
              │ charged, given back
              ▼
            account of the user ──► its queue, if there is one of that name ──► the tree
              used: by resource        charged: by cell
              and flavors of the node

An account outlives its queue: a queue that is created after its pods finds what they use, and one
that is deleted and created again loses nothing.

Pods are counted where the queue, or one above it, has a quota of them. So a queue that comes, goes
or moves changes what is charged to the queues below it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from muster.cluster.quota.aliases import QueueAliases, QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.flavors import Choice, Flavor, Groups, Labels, choices, chosen, flavor_on
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree

K = TypeVar("K")
Requests = tuple[tuple[str, int], ...]
"""(resource, amount) pairs of one pod, in the units of the model."""
PODS: Final = "pods"


class Use(NamedTuple):
    """A resource on nodes that are of the same flavors."""

    #: The flavors of the node, of all that there are.
    node: tuple[str, ...]
    #: Its name.
    resource: str


@dataclass(slots=True, eq=False)
class Account:
    """What those use who name a queue alike."""

    #: Its queue, ``None``: there is none of that name.
    queue: QueueName | None
    #: What their pods use, by the flavors of their node, and resource.
    used: dict[Use, int] = field(default_factory=dict)
    #: What of that the queue is charged.
    charged: dict[Cell, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bill:
    """What one pod costs, and whom."""

    #: Who names the queue.
    user: QueueUser
    #: What the pod requests.
    requests: Requests
    #: The flavors of its node.
    node: tuple[str, ...] = ()

    @property
    def uses(self) -> dict[Use, int]:
        """What the pod uses."""
        return {Use(self.node, name): amount for name, amount in self.requests if amount}


class QueueCharges:
    """The queues of a cluster with what is charged to them."""

    def __init__(self) -> None:
        """Begin without queues."""
        self.tree = QuotaTree()
        self.aliases = QueueAliases()
        #: whether any queue was ever seen; without one nothing is charged
        self.is_used = False
        #: queues that use more or less, or have other numbers, since somebody took note
        self.changed: set[QueueName] = set()
        #: whether queues came, went or moved since somebody took note
        self.moved = False
        #: every flavor that a queue may have
        self.flavors: tuple[Flavor, ...] = ()
        self._groups: dict[QueueName, Groups] = {}
        self._capacity: dict[Cell, Quota] = {}
        self._accounts: dict[QueueUser, Account] = {}
        self._by_text: defaultdict[str, set[QueueUser]] = defaultdict(set)
        self._by_queue: defaultdict[QueueName, set[QueueUser]] = defaultdict(set)
        self._with_pods: set[QueueName] = set()  # queues that have a quota of pods themselves

    def accounts(self) -> Mapping[QueueUser, Account]:
        """Return every account that is not empty."""
        return self._accounts

    def charged(self, queue: QueueName) -> Iterator[tuple[QueueUser, Mapping[Cell, int]]]:
        """Yield those who name a queue, with what it is charged for them."""
        for user in self._by_queue.get(queue, ()):
            yield user, self._accounts[user].charged

    def queue_of(self, user: QueueUser) -> QueueName | None:
        """Return the queue that somebody means, ``None``: there is none of that name."""
        account = self._accounts.get(user)
        return self.aliases.resolve(user) if account is None else account.queue

    # --- queues -----------------------------------------------------------------------------

    def measure(self, amounts: Mapping[str, int]) -> None:
        """Entitle the roots that stand for the cluster to these amounts, by resource.

        But for pods: how many a node takes is no matter of queues that do not count them.
        """
        counted = ((name, amount) for name, amount in amounts.items() if name != PODS)
        self._capacity = {Cell("", name): Quota(amount) for name, amount in counted}
        for node in list(self.tree.nodes()):
            if node.spec.is_cluster:
                self.tree.put(replace(node.spec, quotas=self._capacity))
                self.changed.add(node.spec.name)

    def put(self, spec: QueueSpec, spellings: Iterable[Spelling], groups: Groups = ()) -> bool:
        """Add a queue, or change one. What its users use is charged to it.

        Returns whether nodes may be of other flavors now, so that bills are to be made anew.
        """
        self.is_used = True
        has_others = self._regroup(spec.name, groups)
        if spec.is_cluster and self._capacity:
            spec = replace(spec, quotas=self._capacity)
        counting = self._counting_pods() if self._may_count_otherwise(spec) else None
        self._with_pods.discard(spec.name)
        if _has_pods(spec):
            self._with_pods.add(spec.name)
        self.moved |= self.tree.put(spec)
        self.changed.add(spec.name)
        texts = self.aliases.put(spec.name, spellings)
        mine = {*self._by_queue.get(spec.name, ()), *self._users(texts)}
        self._settle(mine | self._counted_otherwise(counting))
        return has_others

    def groups(self, queue: QueueName) -> Groups:
        """Return the flavors that gangs of a queue may have."""
        return self._groups.get(queue, ())

    def _regroup(self, queue: QueueName, groups: Groups) -> bool:
        """Take note of a queue's groups; returns whether there are other flavors now.

        A group without flavors covers nothing.
        """
        groups = tuple(group for group in groups if group.flavors)
        if groups == self._groups.get(queue, ()):
            return False
        self._groups[queue] = groups
        named = (
            flavor for one in self._groups.values() for group in one for flavor in group.flavors
        )
        before, self.flavors = self.flavors, tuple(sorted(set(named), key=_by_name))
        return before != self.flavors

    def remove(self, queue: QueueName) -> None:
        """Remove a queue. What its users use stays on their accounts."""
        if self.tree.find(queue) is None:
            return
        texts = self.aliases.drop(queue)
        self._groups.pop(queue, None)
        counting = self._counting_pods() if self.tree.has_below(queue) else None
        self._with_pods.discard(queue)
        for user in self._by_queue.pop(queue, ()):
            self._accounts[user].queue, self._accounts[user].charged = None, {}
        self.tree.remove(queue)
        self.moved = True
        self._settle({*self._users(texts), *self._counted_otherwise(counting)})

    def _may_count_otherwise(self, spec: QueueSpec) -> bool:
        """Return whether pods may be counted in the queues below once a queue is so."""
        node = self.tree.find(spec.name)
        if not self.tree.has_below(spec.name):
            return False
        if node is None or node.spec.parent != spec.parent:
            return True
        return _has_pods(node.spec) != _has_pods(spec)

    def _counting_pods(self) -> set[QueueName]:
        """Return the queues that somebody names and in which pods are counted."""
        if not self._with_pods:
            return set()
        named = (queue for queue, users in self._by_queue.items() if users)
        return {queue for queue in named if _counts_pods(self.tree.find(queue))}

    def _counted_otherwise(self, before: set[QueueName] | None) -> set[QueueUser]:
        """Return those who name queues in which pods are counted now and were not, or were.

        ``None``: no queue is counted otherwise.
        """
        if before is None:
            return set()
        others = before ^ self._counting_pods()
        return {user for queue in others for user in self._by_queue.get(queue, ())}

    def _users(self, texts: Iterable[str]) -> Iterable[QueueUser]:
        return (user for text in texts for user in self._by_text.get(text, ()))

    def _settle(self, users: Iterable[QueueUser]) -> None:
        """Charge the queues that users mean now with what they use."""
        for user in sorted(users):
            account = self._accounts[user]
            self._charge(account, account.charged, -1)
            self._mean(user, account)
            account.charged = self.cells(account.queue, account.used)
            self._charge(account, account.charged, 1)

    def _mean(self, user: QueueUser, account: Account) -> None:
        if account.queue is not None:
            self._by_queue[account.queue].discard(user)
        account.queue = self.aliases.resolve(user)
        if account.queue is not None:
            self._by_queue[account.queue].add(user)

    # --- usage ------------------------------------------------------------------------------

    def charge(self, bill: Bill) -> None:
        """Charge a pod."""
        account = self._accounts.get(bill.user)
        if account is None:
            account = self._open(bill.user)
        self._use(account, bill.uses, 1)

    def give_back(self, bill: Bill) -> None:
        """Give back what a pod was charged."""
        account = self._accounts[bill.user]
        self._use(account, bill.uses, -1)
        if not account.used:
            self._close(bill.user, account)

    def _open(self, user: QueueUser) -> Account:
        account = self._accounts[user] = Account(None)
        self._by_text[user.text.lower()].add(user)
        self._mean(user, account)
        return account

    def _close(self, user: QueueUser, account: Account) -> None:
        del self._accounts[user]
        self._by_text[user.text.lower()].discard(user)
        if account.queue is not None:
            self._by_queue[account.queue].discard(user)

    def _use(self, account: Account, uses: Mapping[Use, int], sign: int) -> None:
        for use, amount in uses.items():
            _add(account.used, use, sign * amount)
        cells = self.cells(account.queue, uses)
        for cell, amount in cells.items():
            _add(account.charged, cell, sign * amount)
        self._charge(account, cells, sign)

    def _charge(self, account: Account, cells: Mapping[Cell, int], sign: int) -> None:
        if account.queue is None or not cells:
            return
        use = self.tree.charge if sign > 0 else self.tree.give_back
        use(account.queue, cells)
        self.changed.add(account.queue)

    def request(
        self, queue: QueueName, amounts: Mapping[str, int], choice: Choice | None = None
    ) -> dict[Cell, int]:
        """Return amounts by cell, as they would be charged for these flavors; ``None``: the first.

        Raises ``KeyError`` where there is no such queue.
        """
        groups = self.groups(queue)
        flavors = chosen(groups, next(choices(groups)) if choice is None else choice)
        node = self.tree.find(queue)
        if node is None:
            raise KeyError(queue)
        return {
            Cell(flavors.get(name, "") if groups else _flavor(node.spec, name), name): amount
            for name, amount in amounts.items()
            if name != PODS or _counts_pods(node)
        }

    def cells(self, queue: QueueName | None, uses: Mapping[Use, int]) -> dict[Cell, int]:
        """Return what is used by cell, as it is charged to a queue; nothing where there is none."""
        node = None if queue is None else self.tree.find(queue)
        found: dict[Cell, int] = {}
        if node is None or queue is None:
            return found
        groups = self.groups(queue)
        for (on, name), amount in uses.items():
            if name != PODS or _counts_pods(node):
                flavor = flavor_on(groups, name, on) if groups else _flavor(node.spec, name)
                _add(found, Cell(flavor or "", name), amount)
        return found


def _by_name(flavor: Flavor) -> tuple[str, Labels]:
    return (flavor.name, flavor.labels)


def _counts_pods(node: QueueNode | None) -> bool:
    """Return whether a queue, or one above it, has a quota of pods; otherwise they are free."""
    while node is not None:
        if _has_pods(node.spec):
            return True
        node = node.parent
    return False


def _has_pods(spec: QueueSpec) -> bool:
    return any(cell.resource == PODS for cell in spec.quotas)


def _flavor(spec: QueueSpec, resource: str) -> str:
    """Return the first flavor that a queue has of a resource."""
    return next((cell.flavor for cell in spec.quotas if cell.resource == resource), "")


def _add(amounts: dict[K, int], key: K, amount: int) -> None:
    found = amounts.get(key, 0) + amount
    if found:
        amounts[key] = found
    else:
        amounts.pop(key, None)
