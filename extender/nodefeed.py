"""From nodes on the wire to events of the model, one by one or, from the first list, many."""

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from cluster.events import Event, NodesListed, NodeUpserted
from extender.engine import Engine
from extender.report import Reporter
from kube import translate, wire
from workloads import mig
from workloads.devicenames import DeviceNames
from workloads.nodedevices import NodeDevices


class NodeFeed:
    """Applies nodes to the engine; what of one cannot be read is told and left out."""

    def __init__(self, engine: Engine, reporter: Reporter, names: DeviceNames) -> None:
        self._engine = engine
        self._reporter = reporter
        self._devices = NodeDevices(names, mig.load())
        self.changed: Callable[[str], None] = lambda _name: None
        """Told of a node that came, went or differs from before."""

    def take(self, node: wire.Node) -> None:
        """Take a node over."""
        event, problems = self._read(node)
        self._tell(problems)
        self._apply(event, [node.metadata.name])

    def take_all(self, nodes: Sequence[wire.Node]) -> None:
        """Take nodes of the first list over. Raises ``ValueError``, with none, if one is odd."""
        kinds, kind, problems = self._kinds(nodes)
        names = [node.metadata.name for node in nodes]
        labels = [node.metadata.labels for node in nodes]
        self._apply(NodesListed(kinds, np.array(kind, dtype=np.intp), names, labels), names)
        self._tell(problems)

    def gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a node."""
        self._apply(translate.node_gone(meta), [meta.name])

    def _read(self, node: wire.Node) -> tuple[NodeUpserted, Sequence[str]]:
        return translate.read_node(node, self._devices.of)

    def _kinds(
        self, nodes: Sequence[wire.Node]
    ) -> tuple[tuple[NodeUpserted, ...], list[int], list[str]]:
        """Return a node of each kind, which kind each is of, and what could not be read."""
        kinds: list[NodeUpserted] = []
        kind: list[int] = []
        told: list[str] = []
        known: dict[Hashable, int] = {}
        for node in nodes:
            own = translate.node_kind(node, self._devices.says(node))
            number = known.get(own)
            if number is None:
                event, problems = self._read(node)
                number = len(kinds)
                kinds.append(event)
                told.extend(problems)
                if not problems:  # of each such node it is told, by its name
                    known[own] = number
            kind.append(number)
        return tuple(kinds), kind, told

    def _tell(self, problems: Sequence[str]) -> None:
        for problem in problems:
            self._reporter.unreadable("nodes", problem)

    def _apply(self, event: Event, names: Sequence[str]) -> None:
        before = self._engine.state.node_changes
        self._engine.apply(event)
        if self._engine.state.node_changes != before:  # most updates are heartbeats
            for name in names:
                self.changed(name)
