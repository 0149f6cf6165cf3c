"""Taking over a list of pods one pod at a time: the plain way beside that of columns.

::

    list begins ──► each page: every pod goes the way of a change ──► list ends
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
    """Leaves every pod to be taken over by itself; a ``FirstListReader``."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: UIDs of the pods in the list so far; ``None`` where the model had no pods before it, so
        #: that none can be gone.
        self._seen: set[PodUid] | None = None

    def begin(self) -> None:
        """Prepare for a list that begins, or begins again."""
        self._seen = set() if self._engine.state.has_pods else None

    def take(self, pods: Sequence[wire.Pod]) -> list[int]:
        """Take none over together; return the places of all."""
        if self._seen is not None:
            self._seen.update(pod_uid(pod.metadata.uid) for pod in pods)
        return list(range(len(pods)))

    def take_nodes(self, nodes: Sequence[wire.Node]) -> bool:  # noqa: ARG002  see the protocol
        """Take none over together."""
        return False

    def applied(self, pod: wire.Pod) -> None:
        """Do nothing: no version is remembered."""

    def end(self, known: Callable[[], Uids]) -> Sequence[PodUid]:
        """Return which of the ``known`` pods are not in the list that ends."""
        seen, self._seen = self._seen, None
        return [] if seen is None else [uid for uid in known() if uid not in seen]
