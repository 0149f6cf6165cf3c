"""All tables of one cluster, and the arithmetic that updates their sums.

Only here does a pod take or give back room: ``occupy`` and ``vacate`` move every sum that
depends on where a pod stands (free amounts, the node's pod list, match counts,
anti-affinity, host ports), so no event handler can forget one. Handlers decide *what*
happens (``muster.cluster.handlers``), this module does it.

The same class carries ``Snapshot.overlay``: started from frozen tables it is a scratch
cluster that shares everything it does not touch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappush

import numpy as np

from muster.cluster.columns.paged import NameTable, PagedColumn, PagedList
from muster.cluster.columns.poddirectory import Directory
from muster.cluster.devices.table import DeviceTable
from muster.cluster.events import BudgetUpserted, QueueUpserted
from muster.cluster.ids import NO_ROW, GangKey, PodUid
from muster.cluster.quota.charges import Bill, QueueCharges
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.snapshot import Overlaid, Snapshot, Tables
from muster.cluster.specs.learnedprices import Learned
from muster.cluster.specs.matching import UNSCHEDULABLE, untolerated
from muster.cluster.specs.podconstraints import HostPort, LabelSet, PodAffinityTerm, PodClass
from muster.cluster.tables.gangs import GangTable
from muster.cluster.tables.holds import Hold
from muster.cluster.tables.matchcounts import CountTable, MatchCounters, collide, count_pods
from muster.cluster.tables.nodes import AMOUNT_LIMIT, NodeTable
from muster.cluster.tables.nodeview import NodeView
from muster.cluster.tables.pods import HELD, PodFlag, PodState, PodTable
from muster.cluster.tables.topologybuild import TopologyCell


@dataclass(frozen=True, slots=True)
class Traits:
    """What accounting needs of a pod class, looked up once."""

    #: (resource id, amount) pairs.
    requests: tuple[tuple[int, int], ...]
    #: Its required anti-affinity terms.
    anti_affinity: tuple[PodAffinityTerm, ...]
    #: Ports that it claims on the node.
    host_ports: tuple[HostPort, ...]


class Model:
    """The mutable tables of one cluster."""

    __slots__ = (
        "_topology",
        "_traits",
        "anti_affinity",
        "bill_kinds",
        "bills",
        "budgets",
        "charges",
        "classes",
        "deadlines",
        "devices",
        "directory",
        "gangs",
        "holds",
        "host_ports",
        "label_sets",
        "learned",
        "levels",
        "matches",
        "name",
        "namespaces",
        "node_changes",
        "nodes",
        "pods",
        "queues",
        "standby",
        "touched",
        "unsettled",
    )

    def __init__(self, name: str, levels: tuple[str, ...], like: Tables | None = None) -> None:
        self.name = name
        self.levels = levels
        self.pods = PodTable(None if like is None else like.pods)
        self.nodes = NodeTable(self.pods.priority, None if like is None else like.nodes)
        self.gangs = GangTable(None if like is None else like.gang_columns)
        self.classes: NameTable[PodClass] = NameTable(like=None if like is None else like.classes)
        self.label_sets: NameTable[LabelSet] = NameTable(
            like=None if like is None else like.label_sets
        )
        self.devices = DeviceTable(
            _kinds_of(self.pods, self.classes),
            self.pods.uids.__getitem__,
            None if like is None else like.devices,
        )
        self.holds: PagedList[Hold | None] = PagedList(
            None, like=None if like is None else like.holds
        )
        # Replaced, never changed in place: snapshots refer to them.
        self.namespaces: Mapping[str, Mapping[str, str]] = {} if like is None else like.namespaces
        self.budgets: Mapping[str, BudgetUpserted] = {} if like is None else like.caps
        self.matches = MatchCounters({} if like is None else like.counted)
        self.anti_affinity: CountTable[PodAffinityTerm] = CountTable(
            {} if like is None else like.anti_affinity
        )
        self.host_ports: CountTable[HostPort] = CountTable({} if like is None else like.host_ports)
        self.queues: Mapping[QueueName, QueueUpserted] = {} if like is None else like.queues
        # Charged after each event; a copy for a supposition charges nobody. Whoever changes a pod's
        # room, gang or queue adds its row to those touched, where there are queues.
        self.charges = QueueCharges()
        self.bills: PagedColumn[np.int32, int] = PagedColumn(np.int32, NO_ROW)
        self.bill_kinds: NameTable[Bill] = NameTable()
        self.touched: set[int] = set()
        self.learned: Learned | None = None if like is None else like.learned
        self.directory = Directory(self.pods.uids)
        self.deadlines: list[tuple[float, int]] = []
        self.unsettled: set[int] = set()
        self.node_changes = 0
        standby = {} if like is None else like.standby
        self.standby: dict[int, set[int]] = {gang: set(rows) for gang, rows in standby.items()}
        self._traits: dict[int, Traits] = {}
        self._topology: TopologyCell | None = None

    # --- rows -------------------------------------------------------------------------

    def node_row(self, name: str) -> int:
        """Return the row of a node name; an unknown name gets a new dead row."""
        row = self.nodes.names.find(name)
        if row is None:
            known, row = len(self.nodes.names), self.nodes.row(name)
            if row >= known or row >= self.devices.node_rows:
                self._new_nodes()
        return row

    def node_rows(self, names: Sequence[str]) -> int:
        """Add consecutive rows for unknown nodes and return the first."""
        first = self.nodes.rows(names)
        self._new_nodes()
        return first

    def _new_nodes(self) -> None:
        self.topology_changed()  # its arrays have one entry per row
        if len(self.nodes.names) > self.devices.node_rows:
            self.devices.grow_nodes(self.nodes.alive.capacity)

    def new_pod(self, uid: PodUid) -> int:
        """Add a row for an unknown pod and return it."""
        row = self.pods.new(uid)
        if row >= self.holds.capacity:
            self.holds.grow(self.pods.count)
        self.directory.add(uid, row)
        return row

    def free_pod(self, row: int) -> None:
        """Free a row. Its pod must hold nothing and be in no gang."""
        self.name_pod(row, "")
        self.directory.remove(self.pods.uids[row])
        self.set_nominated(row, None)
        class_id, labels_id = self.pods.pod_class[row], self.pods.labels[row]
        if class_id != NO_ROW:
            self._release_class(class_id)
        if labels_id != NO_ROW:
            self._release_labels(labels_id)
        self.pods.remove(row)

    def name_pod(self, row: int, name: str) -> None:
        """Store the name of a pod; "" removes it."""
        old = self.pods.names[row]
        if old == name:
            return
        self.pods.names[row] = name
        if old:
            self.directory.remove_name(old, row)
        if name:
            self.directory.add_name(name, row)

    def set_kind(self, row: int, pod_class: PodClass, labels: LabelSet) -> None:
        """Write a pod's class and label set. The pod must not occupy a node."""
        old_class, old_labels = self.pods.pod_class[row], self.pods.labels[row]
        new_class, new_labels = self.classes.acquire(pod_class), self.label_sets.acquire(labels)
        self.pods.pod_class[row] = new_class
        self.pods.labels[row] = new_labels
        if old_class != NO_ROW:
            self._release_class(old_class)
        if old_labels != NO_ROW:
            self._release_labels(old_labels)

    def set_nominated(self, row: int, node: str | None) -> None:
        """Write the node that a pod is nominated to."""
        old = self.pods.nominated[row]
        if node is not None:
            new = self.node_row(node)
            self.nodes.refer(new, 1)
            self.pods.nominated[row] = new
        elif old != NO_ROW:
            self.pods.nominated[row] = NO_ROW
        if old != NO_ROW:
            self.nodes.refer(old, -1)

    def set_gang(self, row: int, key: GangKey | None, now: float) -> bool:
        """Move a pod to a gang; return whether the gang is another one than before.

        The gang that it leaves may be forgotten (``drop_gang_if_over``).
        """
        old = self.pods.gang[row]
        known = None if key is None else self.gangs.keys.find(key)
        if known is not None:
            new = known
        elif key is not None:
            new = self.gangs.row(key)
        else:
            new = NO_ROW
        if old == new:
            return False
        self.pods.gang[row] = new
        if self.charges.is_used:
            self.touched.add(row)
        if new != NO_ROW:
            self.gangs.join(new, row, now)
        if old != NO_ROW:
            self.gangs.leave(old, row)
            self.drop_gang_if_over(old)
        return True

    def drop_gang_if_over(self, row: int) -> None:
        """Forget a gang without members, unless an object that still exists describes it."""
        if self.gangs.size(row):
            return
        spec = self.gangs.spec(row)
        if spec is None or spec.lives_with_pods:
            self.gangs.remove(row)

    # --- room -------------------------------------------------------------------------

    def traits(self, class_id: int) -> Traits:
        """Return what accounting needs of a class."""
        found = self._traits.get(class_id)
        if found is None:
            found = self._traits[class_id] = self._make_traits(self.classes[class_id])
        return found

    def occupy(self, row: int, node: int) -> None:
        """Put a pod on a node and add it to everything that is counted per node."""
        self.pods.node[row] = node
        self.nodes.refer(node, 1)
        self.nodes.pods.insert(node, row)
        self._count(row, node, 1)
        if self.charges.is_used:
            self.touched.add(row)

    def vacate(self, row: int) -> None:
        """Take a pod off its node; the exact reverse of ``occupy``."""
        node = self.pods.node[row]
        self._count(row, node, -1)
        self.nodes.pods.remove(node, row)
        self.pods.node[row] = NO_ROW
        self.nodes.refer(node, -1)
        if self.charges.is_used:
            self.touched.add(row)

    def leave_node(self, row: int) -> None:
        """``vacate``, and give the devices back."""
        node = self.pods.node[row]
        self.devices.unclaim(row, node)
        self.vacate(row)

    def reserve(self, row: int, node: str, sign: int) -> None:
        """Reserve (+1) or give back (-1) a pod's room on one of its spare nodes."""
        number = self.node_row(node)
        for resource, amount in self.traits(self.pods.pod_class[row]).requests:
            self.nodes.spare[resource].add(number, sign * amount)
        self.nodes.refer(number, sign)

    def pods_on(self, node: int) -> list[int]:
        """Return the pod rows that occupy a node, lowest priority first."""
        return self.nodes.pods.rows(node)

    def held_on(self, node: int) -> Iterator[int]:
        """Yield the assumed and released pod rows of a node, lowest priority first."""
        return (row for row in self.pods_on(node) if self.pods.state[row] in HELD)

    def shortage(self, node: int) -> dict[int, int]:
        """Return resource id → free amount for the resources of which it is negative."""
        pairs = ((number, column[node]) for number, column in enumerate(self.nodes.free))
        return {number: free for number, free in pairs if free < 0}

    def is_short(self, node: int, traits: Traits) -> bool:
        """Return whether a resource that a class asks for is overcommitted on a node."""
        free = self.nodes.free
        for resource, _ in traits.requests:  # noqa: SIM110  # a generator costs twice as much
            if free[resource][node] < 0:
                return True
        return False

    def unfit(self, row: int, node: int) -> str:
        """Return why kube-scheduler would refuse this node to a pod, "" when it would not.

        Checks only what can change after planning: the node itself, its taints, and host ports.
        """
        nodes = self.nodes
        if not nodes.alive[node]:
            return "node gone"
        closed, taint_set = nodes.unschedulable[node], nodes.taint_set[node]
        pod_class = self.classes[self.pods.pod_class[row]]
        taints = () if taint_set == NO_ROW else nodes.taint_sets[taint_set]
        if closed and untolerated(pod_class.tolerations, (UNSCHEDULABLE,)):
            return "node unschedulable"
        if taints and untolerated(pod_class.tolerations, taints):
            return "node tainted"
        taken = pod_class.host_ports and self._port_taken(row, node, pod_class.host_ports)
        return "host port taken" if taken else ""

    def add_deadline(self, deadline: float, row: int) -> None:
        """Add a deadline: ``ledger.expire`` checks the pod's hold when it has passed."""
        heappush(self.deadlines, (deadline, row))

    # --- frozen -----------------------------------------------------------------------

    def topology_changed(self) -> None:
        """Discard the topology tree; its next use builds a new one."""
        self._topology = None

    def share_topology(self, cell: TopologyCell) -> None:
        """Use a topology tree that exists already."""
        self._topology = cell

    def topology_cell(self, nodes: NodeView) -> TopologyCell:
        """Return the shared tree, to be built from ``nodes`` if it is out of date."""
        if self._topology is None:
            self._topology = TopologyCell(nodes, self.levels)
        return self._topology

    def snapshot(self, generation: int, overlaid: Overlaid) -> Snapshot:
        """Freeze every table without copying."""
        nodes, pods, label_sets = self.nodes.freeze(), self.pods.freeze(), self.label_sets.freeze()
        classes, holds = self.classes.freeze(), self.holds.freeze(self.pods.count)
        gangs, devices = self.gangs.freeze(), self.devices.freeze()
        for query in self.matches.missing():
            self.matches.put(query, count_pods(query, pods, label_sets, self.namespaces))
        return Snapshot(
            cluster=self.name,
            levels=self.levels,
            generation=generation,
            nodes=nodes,
            pods=pods,
            gang_columns=gangs,
            devices=devices,
            classes=classes,
            label_sets=label_sets,
            holds=holds,
            namespaces=self.namespaces,
            caps=self.budgets,
            queues=self.queues,
            learned=self.learned,
            counted=self.matches.table.freeze(),
            anti_affinity=self.anti_affinity.freeze(),
            host_ports=self.host_ports.freeze(),
            standby={gang: frozenset(rows) for gang, rows in self.standby.items()},
            topology_cell=self.topology_cell(nodes),
            overlaid=overlaid,
            counters=self.matches,
        )

    # --- details ----------------------------------------------------------------------

    def _count(self, row: int, node: int, sign: int) -> None:
        pods = self.pods
        class_id, labels_id = pods.pod_class[row], pods.labels[row]
        traits, free = self.traits(class_id), self.nodes.free
        for resource, amount in traits.requests:
            free[resource].add(node, -sign * amount)
        for query in self.matches.queries_of(labels_id, self.label_sets, self.namespaces):
            if query.include_terminating or not pods.flags[row] & PodFlag.TERMINATING:
                self.matches.table.add(query, node, sign)
        for term in traits.anti_affinity:
            self.anti_affinity.add(term, node, sign)
        for port in traits.host_ports:
            self.host_ports.add(port, node, sign)

    def _port_taken(self, row: int, node: int, wanted: tuple[HostPort, ...]) -> bool:
        for other in self.pods_on(node):
            if other != row and self.pods.state[other] == PodState.BOUND:
                taken = self.traits(self.pods.pod_class[other]).host_ports
                if any(collide(mine, theirs) for mine in wanted for theirs in taken):
                    return True
        return False

    def requests_of(self, pod_class: PodClass) -> tuple[tuple[int, int], ...]:
        """Return what a class asks for, by resource id."""
        asked = [(name, amount) for name, amount in pod_class.requests if amount]
        ids = self.nodes.resource_ids([name for name, _ in asked])
        amounts = [min(amount, AMOUNT_LIMIT) for _, amount in asked]
        return tuple(zip(ids, amounts, strict=True))

    def _make_traits(self, pod_class: PodClass) -> Traits:
        return Traits(
            requests=self.requests_of(pod_class),
            anti_affinity=pod_class.pod_anti_affinity,
            host_ports=pod_class.host_ports,
        )

    def _release_class(self, class_id: int) -> None:
        if self.classes.release(class_id):
            self._traits.pop(class_id, None)

    def _release_labels(self, labels_id: int) -> None:
        if self.label_sets.release(labels_id):
            self.matches.forget_labels(labels_id)


def _kinds_of(
    pods: PodTable, classes: NameTable[PodClass]
) -> Callable[[int], tuple[int, PodClass]]:
    """Return what reads a pod's class by its row.

    It refers to tables, not to the model: the model would refer to itself, and megabytes of each
    overlay would stay until the cycle collector comes, or for ever (``observability.memory``).
    """

    def kind(row: int) -> tuple[int, PodClass]:
        number = pods.pod_class[row]
        return number, classes[number]

    return kind
