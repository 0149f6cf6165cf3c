"""Applies a list of pods one pod at a time: the simple alternative to columns.

::

    list begins ──► each page: every pod is applied like a change ──► list ends
         │                      (``Feed.pod``)                            │
         └── UIDs of the pods in it ──────────────────────────────────────┴──► known pods that are
                                                                               not in it are gone
"""

from collections.abc import Callable, Sequence

from extender.engine import Engine
from muster.cluster.columns.uids import Uids
from muster.cluster.ids import PodUid
from muster.kube import wire
from muster.kube.translation.translate import pod_uid


class PlainPods:
    """Has every pod applied by itself; a ``FirstListReader``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: UIDs of the pods in the list so far; ``None`` if the model had no pods before the list,
        #: so that no pod can be gone
        self._seen: set[PodUid] | None = None

    def begin(self) -> None:
        """Prepare for a list that begins, or begins again."""
        self._seen = set() if self._engine.state.has_pods else None

    def take(self, pods: Sequence[wire.Pod]) -> list[int]:
        """Apply none together; return the places of all pods."""
        if self._seen is not None:
            self._seen.update(pod_uid(pod.metadata.uid) for pod in pods)
        return list(range(len(pods)))

    def take_nodes(self, nodes: Sequence[wire.Node]) -> bool:  # noqa: ARG002  see the protocol
        """Apply none together."""
        return False

    def applied(self, pod: wire.Pod) -> None:
        """Do nothing: no versions are stored."""

    def end(self, known: Callable[[], Uids]) -> Sequence[PodUid]:
        """Return which of the ``known`` pods are not in the list that ends."""
        seen, self._seen = self._seen, None
        return [] if seen is None else [uid for uid in known() if uid not in seen]
