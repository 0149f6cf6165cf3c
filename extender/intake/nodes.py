"""From nodes on the wire to events of the model: one by one, or many from the first list."""

from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from extender.engine import Engine
from extender.reporting.reporter import DecisionReporter
from muster.cluster.events import Event, NodesListed, NodeUpserted
from muster.kube import wire
from muster.kube.names import NOTICE
from muster.kube.translation import translate
from muster.workloads.devices import mig
from muster.workloads.devices.devicenames import DeviceNames
from muster.workloads.devices.nodedevices import NodeDevices, Said

_Read = Callable[[wire.Node], tuple[NodeUpserted, Sequence[str]]]


class NodeFeed:
    """Applies nodes to the engine; a part of a node that cannot be read is reported and ignored."""

    def __init__(
        self,
        engine: Engine,
        reporter: DecisionReporter,
        names: DeviceNames,
        changed: Callable[[str], None],
        notices: frozenset[str] = frozenset(),
    ) -> None:
        """Have ``changed`` called with the name of each node that was added, deleted or changed.

        ``notices``: types of conditions by which a node says that it leaves. Each is a taint of the
        model, as the node lifecycle controller makes taints of some.
        """
        self._notices = notices
        self._engine = engine
        self._reporter = reporter
        self._devices = NodeDevices(names, mig.load())
        self._digests = array("q")  # by row: digest of the node that was applied last, 0: unknown
        self._changed = changed

    def take(self, node: wire.Node) -> None:
        """Apply a node. Most updates are heartbeats, which change nothing but times."""
        node = self._noticed(node)
        name, digest = node.metadata.name, self._digest(node)
        row = self._engine.state.node_row(name)
        if row is not None and row < len(self._digests) and self._digests[row] == digest:
            return
        event, problems = self._read(node)
        self._report(problems)
        self._apply(event, [name])
        self._note(name, 0 if problems else digest)  # problems are reported with each update

    def take_all(self, nodes: Sequence[wire.Node]) -> None:
        """Apply nodes of the first list. If one is invalid, raise ``ValueError`` and apply none."""
        nodes = [self._noticed(node) for node in nodes] if self._notices else nodes
        found = self._kinds(nodes)
        names = [node.metadata.name for node in nodes]
        labels = [node.metadata.labels for node in nodes]
        kind = np.array(found.kind, dtype=np.intp)
        self._digests = array("q")
        self._apply(NodesListed(tuple(found.kinds), kind, names, labels), names)
        self._report(found.problems)

    def gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a node."""
        self._note(meta.name, 0)
        self._apply(translate.node_gone(meta), [meta.name])

    def _noticed(self, node: wire.Node) -> wire.Node:
        """Return a node with a taint for each condition that says that it leaves."""
        if not self._notices:
            return node
        said = [
            wire.Taint(key=NOTICE + one.type, effect="NoSchedule")
            for one in node.status.conditions
            if one.type in self._notices and one.status == "True"
        ]
        if not said:
            return node
        spec = replace(node.spec, taints=(*node.spec.taints, *said))
        return replace(node, spec=spec)

    def _digest(self, node: wire.Node) -> int:
        """Return a digest of everything that is read of a node."""
        own = translate.node_kind(node, self._devices.says(node))
        return hash((own, tuple(node.metadata.labels.items()))) or 1

    def _note(self, name: str, digest: int) -> None:
        row = self._engine.state.node_row(name)
        if row is None:
            return
        if row >= len(self._digests):
            self._digests.extend([0] * (row + 1 - len(self._digests)))
        self._digests[row] = digest

    def _read(self, node: wire.Node) -> tuple[NodeUpserted, Sequence[str]]:
        return translate.read_node(node, self._devices.of)

    def _kinds(self, nodes: Sequence[wire.Node]) -> "_Kinds":
        """Return the kind of each node, and what could not be read.

        Nodes of a protobuf page share the objects of the parts in which they are equal
        (``muster.kube.firstlist.nodelayouts``). So the kind of most nodes is found by identity.
        """
        found = _Kinds()
        alike: dict[Hashable, int] = {}
        for node in nodes:
            meta = node.metadata
            labelled = self._devices.labelled(meta.labels)
            shared = id(node.spec), id(node.status), id(meta.annotations), labelled
            number = alike.get(shared)
            if number is None:
                number = found.number(node, self._devices.says(node), self._read)
                if not found.problems:  # problems are reported for each node, with its name
                    alike[shared] = number
            found.kind.append(number)
        return found

    def _report(self, problems: Sequence[str]) -> None:
        for problem in problems:
            self._reporter.unreadable("nodes", problem)

    def _apply(self, event: Event, names: Sequence[str]) -> None:
        before = self._engine.state.node_changes
        self._engine.apply(event)
        if self._engine.state.node_changes != before:  # most updates are heartbeats
            for name in names:
                self._changed(name)


@dataclass(slots=True)
class _Kinds:
    """The kinds of nodes: nodes of a kind are equal in all but their names and labels."""

    #: one node of each kind
    kinds: list[NodeUpserted] = field(default_factory=list)
    #: the number of the kind of each node
    kind: list[int] = field(default_factory=list)
    #: what could not be read, one text each
    problems: list[str] = field(default_factory=list)
    _known: dict[Hashable, int] = field(default_factory=dict)

    def number(self, node: wire.Node, devices: Said, read: _Read) -> int:
        """Return the number of a node's kind; add the kind if it is new."""
        own = translate.node_kind(node, devices)
        number = self._known.get(own)
        if number is not None:
            return number
        event, problems = read(node)
        self.kinds.append(event)
        self.problems.extend(problems)
        if not problems:
            self._known[own] = len(self.kinds) - 1
        return len(self.kinds) - 1
