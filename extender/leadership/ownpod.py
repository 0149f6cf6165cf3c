"""What a replica writes on the replicas' pods: its mark, and the label that the Service selects.

Only the leader writes labels: it adds its own and removes those of former leaders. A deposed leader
does not remove its own label, since it writes nothing any more. The next leader removes it.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import Fenced, KubeError
from muster.kube.names import LEADER, TERM
from muster.kube.resources import PODS
from muster.kube.wire import Pod
from muster.kube.writing.podwrites import PodRef

log = logging.getLogger(__name__)

RETRY_S: Final = 0.5  # until the label is written, calls are not routed to the leader


@dataclass(frozen=True, slots=True)
class PodName:
    """The pod in which this process runs, from the downward API."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class Mark:
    """Waits until the watch has shown our own pod with ``token`` on it."""

    pod: PodName
    #: the expected value of the annotation, "" before one is expected
    token: str = ""
    #: set once the watch has shown it
    seen: asyncio.Event = field(default_factory=asyncio.Event)

    def applied(self, pod: Pod) -> None:
        """Check a pod that was just applied."""
        meta = pod.metadata
        if meta.name == self.pod.name and meta.namespace == self.pod.namespace:
            token = meta.annotations.get(TERM, "")
            if token and token == self.token:
                self.seen.set()


@dataclass(slots=True)
class OwnPod:
    """Writes on our own pod and on the pods of other replicas."""

    #: this replica's pod
    ref: PodRef
    #: the value of the label that all replicas have
    label: str
    #: a client without a fence, for the mark
    free: KubeClient
    #: the client with the fence, for labels
    fenced: KubeClient

    async def mark(self, token: str) -> None:
        """Write ``token``. It has no effect but to come back through the watch."""
        while True:
            try:
                await self._patch(self.free, self.ref, {"annotations": {TERM: token}})
            except KubeError as error:
                _complain(self.ref, error)
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def lead(self) -> None:
        """Have the Service route to this pod, and to no former leader."""
        while True:
            try:
                await self._label(self.ref, self.label)
                for other in await self._labelled():
                    await self._label(other, None)
            except Fenced:
                return
            except KubeError as error:
                _complain(self.ref, error)
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def step_down(self) -> None:
        """Have the Service not route to this pod any more; tried once."""
        try:
            await self._label(self.ref, None)
        except KubeError as error:
            _complain(self.ref, error)

    async def _labelled(self) -> list[PodRef]:
        """Read the other pods with the label, from the API server and not from the model."""
        selector = f"{LEADER}={self.label}"
        pods = await self.fenced.list(PODS, namespace=self.ref.namespace, labelSelector=selector)
        metas = [pod.metadata for pod in pods if pod.metadata.uid != self.ref.uid]
        return [PodRef(meta.namespace, meta.name, meta.uid) for meta in metas]

    async def _label(self, pod: PodRef, value: str | None) -> None:
        await self._patch(self.fenced, pod, {"labels": {LEADER: value}})

    async def _patch(self, client: KubeClient, pod: PodRef, metadata: dict[str, object]) -> None:
        body = {"metadata": {"uid": pod.uid, **metadata}}
        await client.patch(PODS, pod.name, body, namespace=pod.namespace, content_type=MERGE)


def _complain(pod: PodRef, error: KubeError) -> None:
    log.warning("replica's pod not patched", extra={"pod": str(pod), "error": str(error)})
