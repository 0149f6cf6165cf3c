"""Events about this node and its pods, as ``kubectl describe`` shows them.

::

    health of a device ─────┐
    MIG layout ─────────────┼──► Event about the Node
    configuration problem ──┘
    devices of a pod differ from its plan ──► Event about the pod
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from deviceplugin.allocation.values import Deviation
from deviceplugin.health.reports import Change, event
from deviceplugin.metrics import DevicePluginMetrics
from deviceplugin.mig.reconfiguration import LayoutProgress, LayoutState
from muster.kube.writing.events import EventRecorder, Regarding

log = logging.getLogger(__name__)

_ACTION_CHARACTERS: Final = 128  # the API server's limit of an Event's action


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """Writes the Events of one node's device plugin."""

    recorder: EventRecorder
    #: name of the Node
    node: str
    metrics: DevicePluginMetrics

    def health_changed(self, changes: Sequence[Change]) -> None:
        """Write an Event for each device whose health has changed."""
        for change in changes:
            text = event(change)
            action = f"Watch{change.device}"[:_ACTION_CHARACTERS]  # each device has its own series
            self._about_node(text.reason, text.note, action, warning=text.warning)

    def layout_changed(self, progress: LayoutProgress | None) -> None:
        """Write how a MIG layout ended: the state label has no room for the reason."""
        if progress is None or progress.state is LayoutState.PENDING:
            return
        failed = progress.state is LayoutState.FAILED
        note = f"{progress.layout}: {progress.reason if failed else 'GPUs are cut so'}"
        reason = "MigConfigFailed" if failed else "MigConfigApplied"
        self._about_node(reason, note, "CutGpus", warning=failed)

    def configuration_problem(self, problem: str) -> None:
        """Write what has no effect in the configuration that the Node's label chooses."""
        self._about_node("ConfigurationProblem", problem, "ChooseConfiguration", warning=True)

    def deviated(self, deviation: Deviation) -> None:
        """Write that a pod has other devices than its plan says."""
        self.metrics.deviations.labels("reported").inc()
        pod = Regarding.pod(deviation.namespace, deviation.pod, deviation.uid)
        note = _note(deviation)
        log.warning(note, extra={"pod": f"{deviation.namespace}/{deviation.pod}"})
        self.recorder.record(
            pod, "DevicesDiffer", note, action="GiveDevices", warning=deviation.sure
        )

    def _about_node(self, reason: str, note: str, action: str, *, warning: bool) -> None:
        # The name is in the place of the UID, as in the kubelet's own Events: `kubectl describe
        # node` looks for it there.
        node = Regarding("v1", "Node", "", self.node, self.node)
        self.recorder.record(node, reason, note, action=action, warning=warning)


def _note(deviation: Deviation) -> str:
    """Return the sentence that names what differs."""
    about = f"{deviation.resource}: " if deviation.resource else ""
    detail = f" ({deviation.detail})" if deviation.detail else ""
    planned = ", ".join(deviation.expected) or "nothing"
    given = ", ".join(deviation.given) or "nothing"
    return f"{about}{deviation.why}{detail}: planned {planned}; given {given}"
