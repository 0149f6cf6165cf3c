"""What kube-scheduler knows and Muster does not: nodes that cannot serve a gang's volumes.

Stands for every filter that is not in Muster's model. Muster learns of it only by the
condition that kube-scheduler writes on a pod that it sent there::

    refuse ──► kube-scheduler turns members away ──► Muster believes it after a while, and
                        │                            keeps the gang off the node for minutes
                        └── ends: the gang may go there, Muster hears nothing of it
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.planning.refusednodes import KEEP_S
from loadtest.chaos.verdict.records import JOB
from loadtest.testbed.client.wirejson import labels_of
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo
from loadtest.testbed.standins.scheduler.requirements import Failure

_NO_VOLUME: Final = Failure(
    "VolumeBinding", "node(s) didn't find available persistent volumes to bind"
)
"""Plugin and reason as in volume_binding.go and binder.go; evicting pods does not help."""
_RETRY_S: Final = 61.0  # extender.planning.requeue.REFUSED_RETRY_S and a look of the judge


@dataclass(slots=True)
class Volumes:
    """Pairs of gang and node that do not go together."""

    #: Returns virtual seconds.
    now: Callable[[], float]
    _refused: dict[str, set[str]] = field(default_factory=dict)
    _kept_off: dict[str, dict[str, float]] = field(default_factory=dict)

    def refuse(self, gang: str, node: str) -> None:
        """Have kube-scheduler turn the gang away from the node from now on."""
        self._refused.setdefault(gang, set()).add(node)

    def serve(self, gang: str, node: str) -> None:
        """End it."""
        if node in self._refused.get(gang, ()):
            self._refused[gang].discard(node)
            until = self.now() + KEEP_S + _RETRY_S
            self._kept_off.setdefault(gang, {})[node] = until

    def serve_all(self) -> None:
        """End all of it."""
        for gang, nodes in self._refused.items():
            for node in sorted(nodes):
                self.serve(gang, node)

    def out(self, gang: str) -> frozenset[str]:
        """Return the nodes that a gang need not be planned on: refused, or not long ago."""
        kept_off = self._kept_off.get(gang, {})
        recent = {node for node, until in kept_off.items() if until > self.now()}
        return frozenset(self._refused.get(gang, set()) | recent)

    def failure(self, pod: PodInfo, node: NodeInfo) -> Failure | None:
        """Answer as one of kube-scheduler's filter plugins."""
        refused = self._refused.get(labels_of(pod.raw).get(JOB, ""))
        return _NO_VOLUME if refused and node.name in refused else None
