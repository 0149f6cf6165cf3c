"""Takes plans off pods that do not count: Muster did not write them for these pods.

While a plan is on a pod, each restart judges it anew. Once it is off, the pod is as any other.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.ids import PodUid
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.names import PLAN
from muster.kube.resources import PODS
from muster.kube.writing.podwrites import PodRef

log = logging.getLogger(__name__)

RETRY_S: Final = 2.0
MOST: Final = 1_000  # that are noted; the others keep their plans, which count for nothing


@dataclass(slots=True)
class ForgedPlans:
    """The pods with such plans. ``put`` and ``drop`` are called by the feed, ``run`` is a task."""

    client: KubeClient
    _pods: dict[PodUid, PodRef] = field(default_factory=dict)
    _some: asyncio.Event = field(default_factory=asyncio.Event)

    def __len__(self) -> int:
        return len(self._pods)

    def put(self, uid: PodUid, pod: PodRef) -> None:
        """Note a pod."""
        if len(self._pods) < MOST:
            self._pods[uid] = pod
            self._some.set()

    def drop(self, uid: PodUid) -> None:
        """Forget a pod that is bound or gone; unknown ones are no error."""
        self._pods.pop(uid, None)

    async def run(self) -> None:
        """Take plans off, forever."""
        while True:
            await self._some.wait()
            await self.look()
            if self._pods:
                await asyncio.sleep(RETRY_S)
            else:
                self._some.clear()

    async def look(self) -> None:
        """Take the plans off all pods that are noted, until that fails for one: it is tried later.

        Changes of plans are refused while no webhook answers, of all pods alike.
        """
        for uid, pod in list(self._pods.items()):
            try:
                await self._take_off(pod)
            except NotFound:
                pass
            except KubeError as error:
                log.warning("plan stays", extra={"pod": str(pod), "error": str(error)})
                if self._pods.pop(uid, None) is not None:
                    self._pods[uid] = pod  # after the others
                return
            self._pods.pop(uid, None)

    async def _take_off(self, pod: PodRef) -> None:
        """Take a pod's plan off, unless the pod is bound by now: it has its room then."""
        found = await self.client.get_pod(pod.namespace, pod.name)
        if found.metadata.uid != pod.uid or found.spec.node_name:
            return
        metadata = {
            "uid": pod.uid,
            "resourceVersion": found.metadata.resource_version,
            "annotations": {PLAN: None},
        }
        body = {"metadata": metadata}
        await self.client.patch(PODS, pod.name, body, namespace=pod.namespace, content_type=MERGE)
