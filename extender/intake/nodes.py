"""From nodes on the wire to events of the model, one by one or, from the first list, many."""

from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.engine import Engine
from extender.reporting.reporter import DecisionReporter
from muster.cluster.events import Event, NodesListed, NodeUpserted
from muster.kube import wire
from muster.kube.translation import translate
from muster.workloads.devices import mig
from muster.workloads.devices.devicenames import DeviceNames
from muster.workloads.devices.nodedevices import NodeDevices, Said

_Read = Callable[[wire.Node], tuple[NodeUpserted, Sequence[str]]]


class NodeFeed:
    """Applies nodes to the engine; what of one cannot be read is reported and left out."""

    def __init__(
        self,
        engine: Engine,
        reporter: DecisionReporter,
        names: DeviceNames,
        changed: Callable[[str], None],
    ) -> None:
        """Call ``changed`` with the name of each node that came, went or differs from before."""
        self._engine = engine
        self._reporter = reporter
        self._devices = NodeDevices(names, mig.load())
        self._said = array("q")  # by row: a digest of what a node said last, 0 for unknown
        self._changed = changed

    def take(self, node: wire.Node) -> None:
        """Take a node over. Most say what they said before, at another time: a heartbeat."""
        name, digest = node.metadata.name, self._digest(node)
        row = self._engine.state.node_row(name)
        if row is not None and row < len(self._said) and self._said[row] == digest:
            return
        event, problems = self._read(node)
        self._tell(problems)
        self._apply(event, [name])
        self._note(name, 0 if problems else digest)  # what cannot be read is reported each time

    def take_all(self, nodes: Sequence[wire.Node]) -> None:
        """Take nodes of the first list over. Raises ``ValueError``, with none, if one is odd."""
        found = self._kinds(nodes)
        names = [node.metadata.name for node in nodes]
        labels = [node.metadata.labels for node in nodes]
        kind = np.array(found.kind, dtype=np.intp)
        self._said = array("q")
        self._apply(NodesListed(tuple(found.kinds), kind, names, labels), names)
        self._tell(found.problems)

    def gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a node."""
        self._note(meta.name, 0)
        self._apply(translate.node_gone(meta), [meta.name])

    def _digest(self, node: wire.Node) -> int:
        """Return a digest that differs from that of a node that differs in anything."""
        own = translate.node_kind(node, self._devices.says(node))
        return hash((own, tuple(node.metadata.labels.items()))) or 1

    def _note(self, name: str, digest: int) -> None:
        row = self._engine.state.node_row(name)
        if row is None:
            return
        if row >= len(self._said):
            self._said.extend([0] * (row + 1 - len(self._said)))
        self._said[row] = digest

    def _read(self, node: wire.Node) -> tuple[NodeUpserted, Sequence[str]]:
        return translate.read_node(node, self._devices.of)

    def _kinds(self, nodes: Sequence[wire.Node]) -> "_Kinds":
        """Return of which kind each node is, and what could not be read.

        What nodes of a page in protobuf have in common is the very same object in each of them
        (``muster.kube.firstlist.nodelayouts``), so most are of a known kind by identity.
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
                if not found.problems:  # those of each node are reported, by its name
                    alike[shared] = number
            found.kind.append(number)
        return found

    def _tell(self, problems: Sequence[str]) -> None:
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
    """Nodes by everything but their names and labels."""

    #: one node of each kind
    kinds: list[NodeUpserted] = field(default_factory=list)
    #: the number of the kind of each node
    kind: list[int] = field(default_factory=list)
    #: what of the kinds could not be read
    problems: list[str] = field(default_factory=list)
    _known: dict[Hashable, int] = field(default_factory=dict)

    def number(self, node: wire.Node, devices: Said, read: _Read) -> int:
        """Return the number of a node's kind, a new one if it is the first of it."""
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
