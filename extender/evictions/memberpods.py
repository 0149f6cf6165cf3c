"""Reads the members of gangs from the API server, whole pods: the model has no names.

A list with the labels that all members of a gang have costs the gang, and not its namespace: that
may have a hundred thousand pods, and each gang that gives way is read twice. Where a member is
missing in it, its labels may have changed, so all pods of the namespace are read.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from extender.engine import Engine
from muster.cluster.ids import PodUid
from muster.kube.client import KubeClient
from muster.kube.resources import PODS
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod


@dataclass(slots=True, eq=False)
class MemberPods:
    """The pods that were read in one look of the evictor."""

    client: KubeClient
    engine: Engine
    #: By namespace and label selector ("" for all pods), by UID.
    _known: dict[tuple[str, str], dict[PodUid, Pod]] = field(default_factory=dict)

    def forget(self) -> None:
        """Begin another look."""
        self._known.clear()

    async def read(self, namespace: str, members: Collection[PodUid]) -> list[Pod]:
        """Return those of some pods that exist. Raises ``KubeError``."""
        labels = self.engine.state.shared_labels(members)
        selector = ",".join(f"{key}={value}" for key, value in labels)
        found = await self._list(namespace, selector)
        if selector and any(uid not in found for uid in members):
            found = await self._list(namespace, "")
        return [found[uid] for uid in members if uid in found]

    async def _list(self, namespace: str, selector: str) -> dict[PodUid, Pod]:
        key = (namespace, selector)
        if key not in self._known:
            asked = {"labelSelector": selector} if selector else {}
            pods = await self.client.list(PODS, namespace=namespace, **asked)
            self._known[key] = {pod_uid(pod.metadata.uid): pod for pod in pods}
        return self._known[key]
