"""``ClusterState``: one cluster, one writer.

::

    event ──► apply() ──► handlers (podevents, nodeevents, planevents, gangevents)
                │              │ decide what happens
                │              ▼
                │         Model: columns and sums
                ▼
            effects                  snapshot() ──► frozen columns, shared copy-on-write

Nothing outside this package writes to a model. No clock, no randomness, no I/O: time comes
in with the event, so a recorded stream of events leads to the same state every time.
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from muster.cluster import validation
from muster.cluster.columns.uids import Uids
from muster.cluster.dump import reader as loading
from muster.cluster.dump import writer as dumping
from muster.cluster.dump.blocks import BlockReader
from muster.cluster.effects import Effect, EventOutcome
from muster.cluster.events import (
    BudgetGone,
    BudgetUpserted,
    CapacityMeasured,
    Event,
    GangGone,
    GangSkipped,
    GangUpserted,
    MembersMoved,
    MembersNumbered,
    NamespaceGone,
    NamespaceUpserted,
    NodeGone,
    NodesListed,
    NodeUpserted,
    PlanHeld,
    PodForgotten,
    PodGone,
    PodReleased,
    PodsBound,
    PodUpserted,
    PricesLearned,
    QueueGone,
    QueueUpserted,
    StandbyHeld,
    Tick,
)
from muster.cluster.handlers import (
    devicetroubles,
    gangevents,
    ledger,
    nodeevents,
    nodeslisted,
    planevents,
    podevents,
    podsbound,
    quotaevents,
)
from muster.cluster.handlers.devicetroubles import DeviceTrouble
from muster.cluster.ids import NO_ROW, GangKey, PodUid
from muster.cluster.model import Model
from muster.cluster.overlay import overlay
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.charges import QueueCharges
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables import gangview
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.holds import Hold, HoldState
from muster.cluster.tables.pods import PodState


class ClusterState:
    """The live model of one cluster.

    ``levels``: node label keys, widest first, the host's last. ``gate``: name of the
    scheduling gate that a plan lifts.
    """

    __slots__ = ("_gangs", "_model", "_snapshot", "gate", "generation")

    def __init__(self, name: str, *, levels: Sequence[str], gate: str) -> None:
        if not levels or len(set(levels)) < len(levels):
            raise ValueError(
                f"cluster {name}: levels is {tuple(levels)}; it needs at least the host's label "
                "key, and none twice"
            )
        self.gate = gate
        self.generation = 0
        self._model = Model(name, tuple(levels))
        self._snapshot: Snapshot | None = None
        self._gangs: dict[GangKey, GangView] = {}

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self._model.name

    @property
    def levels(self) -> tuple[str, ...]:
        """Node label keys of the topology levels, widest first."""
        return self._model.levels

    @property
    def node_changes(self) -> int:
        """Number of changes to nodes, without those of the devices that pods were given."""
        return self._model.node_changes

    # --- events -----------------------------------------------------------------------

    def apply(self, event: Event, *, now: float) -> list[Effect]:
        """Apply one event and return its effects.

        Raises ``ValueError`` for a value that no cluster can have and ``PlanStale`` for a plan
        that no longer fits. The state is unchanged then.
        """
        out = EventOutcome()
        self._dispatch(event, out, now)
        if self._model.devices.disturbed:
            ledger.review_disturbed(self._model, out)
        if self._model.touched:
            quotaevents.settle(self._model, out)
        if out.changed or out.effects:
            self.generation += 1
            self._snapshot = None
            self._gangs.clear()
        elif isinstance(event, PricesLearned):
            self.generation += 1
            if self._snapshot is not None:  # nothing else is different: all tables are as they were
                self._snapshot = replace(
                    self._snapshot, learned=event.learned, generation=self.generation
                )
        return list(dict.fromkeys(out.effects))

    def _dispatch(self, event: Event, out: EventOutcome, now: float) -> None:  # noqa: C901, PLR0912  # a table
        model = self._model
        match event:
            case PodUpserted():
                podevents.upsert(model, event, out, gate=self.gate, now=now)
            case PodsBound():
                podsbound.enter(model, event, out, gate=self.gate, now=now)
            case PodGone():
                podevents.gone(model, event, out, now=now)
            case NodeUpserted():
                nodeevents.upsert(model, event, out)
            case NodesListed():
                nodeslisted.enter(model, event, out)
            case NodeGone():
                nodeevents.gone(model, event, out)
            case PlanHeld():
                planevents.held(model, event, out, now=now)
            case StandbyHeld():
                planevents.stood_by(model, event, out)
            case PricesLearned(learned):
                model.learned = learned
            case PodReleased():
                planevents.released(model, event, out)
            case PodForgotten():
                planevents.forgotten(model, event, out)
            case GangSkipped():
                planevents.skipped(model, event, out)
            case Tick():
                planevents.tick(model, event, out, now=now)
            case GangUpserted():
                gangevents.gang_upserted(model, event, out)
            case GangGone():
                gangevents.gang_gone(model, event, out)
            case MembersNumbered():
                gangevents.members_numbered(model, event, out)
            case MembersMoved():
                gangevents.members_moved(model, event, out, now=now)
            case NamespaceUpserted():
                gangevents.namespace_upserted(model, event, out)
            case NamespaceGone():
                gangevents.namespace_gone(model, event, out)
            case BudgetUpserted():
                gangevents.budget_upserted(model, event, out)
            case BudgetGone():
                gangevents.budget_gone(model, event, out)
            case QueueUpserted():
                quotaevents.upserted(model, event, out)
            case QueueGone():
                quotaevents.gone(model, event, out)
            case CapacityMeasured():
                quotaevents.measured(model, event)

    # --- views ------------------------------------------------------------------------

    @property
    def charges(self) -> QueueCharges:
        """The queues and what is charged to them; only events change them."""
        return self._model.charges

    def queue_user(self, gang: GangView) -> QueueUser:
        """Return how a gang names its queue."""
        dialect, namespace, _ = gang.key.split("/", 2)
        return QueueUser(dialect, namespace, gang.queue)

    def charged(self, rows: Iterable[int]) -> dict[QueueName, dict[Cell, int]]:
        """Return what queues are charged for pods, by their rows."""
        found: defaultdict[QueueName, Counter[Cell]] = defaultdict(Counter)
        bills = self._model.bills
        kinds = Counter(bills[row] for row in rows if row < bills.capacity)
        for number, count in kinds.items():
            bill = None if number == NO_ROW else self._model.bill_kinds[number]
            queue = None if bill is None else self.charges.queue_of(bill.user)
            if bill is not None and queue is not None:
                for cell, amount in self.charges.cells(queue, bill.uses).items():
                    found[queue][cell] += amount * count
        return {queue: dict(cells) for queue, cells in found.items()}

    def snapshot(self) -> Snapshot:
        """Return the present state, frozen. Cheap: what did not change is shared."""
        if self._snapshot is None:
            self._snapshot = self._model.snapshot(self.generation, overlay)
        return self._snapshot

    def prepare(self) -> Generator[None, None, None]:
        """Copy in parts what the first event after the next snapshot would copy at once.

        To be run before a snapshot is taken.
        """
        if self._snapshot is None:  # else no column was written since
            yield from self._model.nodes.prepare()

    def pod_row(self, uid: PodUid) -> int | None:
        """Return the row of a pod."""
        return self._model.directory.row(uid)

    def pod_rows(self, uids: Uids) -> NDArray[np.int32]:
        """Return int32[n]: the rows of pods, ``NO_ROW`` for those that are not known."""
        first = self.pod_row(uids[0]) if len(uids) else None
        if first is not None and first + len(uids) <= self._model.pods.count:
            # Pods that arrived together have consecutive rows; a list names them together again.
            rows = np.arange(first, first + len(uids), dtype=np.int32)
            if self._model.pods.uids.are_at(rows, uids).all():
                return rows
        return self._model.directory.rows(uids)

    def settle(self) -> None:
        """Finish work that was deferred while a list was read: to be called when the list ends."""
        self._model.nodes.pods.settled()

    @property
    def has_pods(self) -> bool:
        """Whether any pod or hot spare is known."""
        return self.pod_count > 0

    @property
    def pod_count(self) -> int:
        """The number of pods and hot spares that are known."""
        return len(self._model.directory)

    def pod_uid(self, row: int) -> PodUid:
        """Return the uid of a pod row in use."""
        return self._model.pods.uids[row]

    def longest_grace(self, rows: Iterable[int]) -> int:
        """Return how many seconds the slowest of some pod rows may take to end, 0 for none."""
        pods, classes = self._model.pods, self._model.classes
        return max((classes[pods.pod_class[row]].grace_seconds for row in rows), default=0)

    def shared_labels(self, uids: Iterable[PodUid]) -> tuple[tuple[str, str], ...]:
        """Return the labels that all of some pods have, sorted; none of those that are unknown.

        Without keys that differ for every pod (``LabelSet``).
        """
        rows = [row for row in map(self.pod_row, uids) if row is not None]
        numbers = {self._model.pods.labels[row] for row in rows}
        found = [self._model.label_sets[number].labels for number in numbers]
        return (
            tuple(item for item in found[0] if all(item in of for of in found[1:])) if found else ()
        )

    def pod_state(self, uid: PodUid) -> PodState | None:
        """Return a pod's state."""
        row = self.pod_row(uid)
        return None if row is None else PodState(self._model.pods.state[row])

    def hold(self, uid: PodUid) -> Hold | None:
        """Return a pod's ledger entry; for a bound pod a *confirmed* one, which is not stored."""
        row = self.pod_row(uid)
        if row is None:
            return None
        if self._model.pods.state[row] != PodState.BOUND:
            return self._model.holds[row]
        node = self._model.pods.node[row]
        name = self._model.nodes.names[node]
        devices = self._model.devices.claimed(row, node)
        return Hold(
            state=HoldState.CONFIRMED,
            node=name,
            pins=(name,),
            gang=podevents.gang_key(self._model, row),
            devices={name: devices} if devices else {},
            rank=self._model.pods.rank[row],
        )

    def takes(self, uid: PodUid, node: str) -> bool:
        """Return whether a pod may still be bound to a node of its plan (``ledger.takes``).

        For an unknown pod the answer is whether the node exists.
        """
        row, target = self.pod_row(uid), self._model.nodes.names.find(node)
        if target is None:
            return False
        if row is None:
            return self._model.nodes.alive[target]
        return ledger.takes(self._model, row, target)

    def find_pod(self, namespace: str, name: str) -> PodUid | None:
        """Return the newest managed pod of a name that is not bound yet."""
        pods = self._model.pods
        rows = self._model.directory.named(f"{namespace}/{name}")
        if not rows:
            return None
        return pods.uids[max(reversed(rows), key=lambda row: pods.created[row])]

    def gang(self, key: GangKey) -> GangView | None:
        """Return the present view of a gang."""
        found = self._gangs.get(key)
        row = self._model.gangs.keys.find(key)
        if found is None and row is not None:
            facts = self._model.gangs.freeze().facts(row)
            found = self._gangs[key] = gangview.view(facts, self._model.pods.peek())
        return found

    def is_idle(self, key: GangKey) -> bool:
        """Return whether a gang is known, no member waits and no hot spare is missing.

        Much cheaper than ``gang``.
        """
        row = self._model.gangs.keys.find(key)
        if row is None:
            return False
        members = np.frombuffer(self._model.gangs.members[row], dtype=np.int32)
        states = self._model.pods.state.peek(self._model.pods.count)[members]
        if bool((states == PodState.WAITING.value).any()):
            return False
        if not self._model.gangs.wants_hot_spares(row):
            return True
        view = self.gang(key)
        return view is None or not view.lacks_standby

    def holds_room(self, key: GangKey) -> bool:
        """Return whether a member of a gang is on a node, or room is held for one."""
        return self.holding(key) > 0

    def holding(self, key: GangKey) -> int:
        """Return how many members of a gang are on a node, or have room held for them.

        Much cheaper than ``gang``.
        """
        row = self._model.gangs.keys.find(key)
        if row is None:
            return 0
        members = np.frombuffer(self._model.gangs.members[row], dtype=np.int32)
        nodes = self._model.pods.node.peek(self._model.pods.count)[members]
        return int(np.count_nonzero(nodes != NO_ROW))

    def lack_of_members(self, key: GangKey) -> tuple[int, int] | None:
        """Return how many members a gang has and how many it needs, ``None`` if it has enough.

        Members count in any state, so a gang that has enough here may still be incomplete. O(1).
        """
        row = self._model.gangs.keys.find(key)
        if row is None:
            return None
        present, needed = self._model.gangs.present_and_needed(row)
        return (present, needed) if present < needed else None

    def members(self, key: GangKey) -> list[PodUid]:
        """Return the pods of a gang, whatever they do; none for a gang that is not known."""
        row = self._model.gangs.keys.find(key)
        rows = [] if row is None else self._model.gangs.rows(row)
        return [self.pod_uid(pod) for pod in rows]

    def gangs(self) -> Iterator[GangKey]:
        """Yield the keys of all gangs."""
        return (key for _, key in self._model.gangs.live())

    def gang_of(self, uid: PodUid) -> GangKey | None:
        """Return the gang that a pod is a member of."""
        row = self.pod_row(uid)
        return None if row is None else podevents.gang_key(self._model, row)

    def node_row(self, name: str) -> int | None:
        """Return the row of a node, or of an unknown node that pods name."""
        return self._model.nodes.names.find(name)

    def bound_node(self, uid: PodUid) -> str | None:
        """Return the node that a pod is bound to."""
        row = self.pod_row(uid)
        if row is None or self._model.pods.state[row] != PodState.BOUND:
            return None
        return self._model.nodes.names[self._model.pods.node[row]]

    def device_troubles(self, node: str) -> list[DeviceTrouble]:
        """Return the troubles of a node with devices that pods have or that plans name for them."""
        row = self._model.nodes.names.find(node)
        return [] if row is None else devicetroubles.troubles_on(self._model, row)

    # --- trust ------------------------------------------------------------------------

    def validate(self) -> None:
        """Compute everything derived anew; raise ``InvariantViolation`` if something differs."""
        validation.validate(self._model)

    def dump(self) -> bytes:
        """Return the whole state as bytes, versioned; ``load`` gives an equal one."""
        return dumping.dump(self.frozen())

    def is_due(self, now: float) -> bool:
        """Return whether a deadline has passed that no ``Tick`` has handled."""
        return ledger.is_due(self._model, now)

    def frozen(self) -> dumping.Frozen:
        """Return the present state, frozen, to be dumped in pieces while events go on."""
        return dumping.freeze(self._model, self.snapshot(), self.gate)

    @classmethod
    def load(cls, data: bytes) -> "ClusterState":
        """Rebuild a state from ``dump``'s bytes. Raises ``ValueError`` for anything else."""
        return cls._of(*loading.load(data))

    @classmethod
    def read(cls, blocks: BlockReader, number: int) -> "ClusterState":
        """Rebuild a state from its index block. Raises ``ValueError`` for any other block."""
        return cls._of(*loading.read(blocks, number))

    @classmethod
    def _of(cls, model: Model, index: dumping.StateIndex) -> "ClusterState":
        state = cls(model.name, levels=model.levels, gate=index.gate)
        state.generation = index.generation
        state._model = model
        quotaevents.restore(model)
        return state
