"""What people see of nodes that gangs leave: Events on nodes and gangs, metrics and log lines."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.metrics import ExtenderMetrics
from extender.reporting.boundgangs import DueEvents, EventText
from muster.cluster.ids import GangKey
from muster.kube.writing.events import EventRecorder, Regarding
from muster.queueing.drains.leavingnodes import LeavingNode

log = logging.getLogger(__name__)

BEGUN: Final = "GangsLeave"
DONE: Final = "GangsLeft"
WAITS: Final = "DrainWaits"
_ACTION: Final = "Draining"


@dataclass(slots=True)
class DrainReports:
    """Reports each node once when gangs begin to leave it, and once when they have."""

    recorder: EventRecorder
    metrics: ExtenderMetrics
    #: Events of gangs with only bound members
    due: DueEvents
    #: by node: whether gangs are left there
    _nodes: dict[str, bool] = field(default_factory=dict)
    _said: dict[GangKey, str] = field(default_factory=dict)

    def nodes(self, leaving: Collection[LeavingNode], gangs: Mapping[str, int]) -> None:
        """Report nodes; ``gangs``: how many are left on each."""
        for node in leaving:
            left = gangs.get(node.name, 0)
            if left and not self._nodes.get(node.name):
                text = f"gangs leave it whole, {left} are there: {node.why}"
                self._on(node, BEGUN, text)
            if not left and self._nodes.get(node.name, True):
                self._on(node, DONE, "no pod of a gang is left: other pods are kubectl drain's")
        self._nodes = {node.name: bool(gangs.get(node.name)) for node in leaving}
        self.metrics.leaving_nodes.set(len(leaving))

    def gangs(self, waits: Mapping[GangKey, str]) -> None:
        """Report what gangs wait for, where that is new; ``waits``: of all that are left."""
        for gang, why in waits.items():
            if why and self._said.get(gang) != why:
                text = f"gang {gang} has to leave nodes that are drained and waits: {why}"
                self.due.put(EventText(gang, WAITS, text, warning=False))
        self._said = dict(waits)
        self.metrics.leaving_gangs.set(len(waits))

    def _on(self, node: LeavingNode, reason: str, text: str) -> None:
        log.info("node drained" if reason == DONE else "node leaves", extra={"node": node.name})
        about = Regarding("v1", "Node", "", node.name, node.name)  # as the kubelet does: its name
        self.recorder.record(about, reason, text, action=_ACTION)
