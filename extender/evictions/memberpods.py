"""Reads the members of gangs from the API server, whole pods: the model has no names.

::

    list by the labels that all members of a gang have ──► all there: done
        │ one is missing
        ├─ for less than ``MISSING_S``: it has just gone, and the watch shows it soon
        └─ for longer: its labels may have changed; all pods of the namespace are read
               └─ missing there, too: it is gone

A list by labels costs the gang, and not its namespace: that may have some 100,000 pods, and each
gang that gives way is read twice. Members that have just gone are missing all the time where gangs
give way, so a namespace is not read for them.
"""

import asyncio
import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Engine
from muster.cluster.ids import PodUid
from muster.kube.client import KubeClient
from muster.kube.resources import PODS
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod

MISSING_S: Final = 5.0  # seconds: how late a watch is at most, as a rule
_GONE: Final = math.inf

Pods = dict[PodUid, Pod]


@dataclass(slots=True, eq=False)
class MemberPods:
    """The pods that were read in one look of the evictor."""

    client: KubeClient
    engine: Engine
    #: By namespace and label selector ("" for all pods).
    _known: dict[tuple[str, str], asyncio.Future[Pods]] = field(default_factory=dict)
    #: Since when members are missing in lists, seconds since the epoch; infinite: they are gone.
    _missing: dict[PodUid, float] = field(default_factory=dict)

    def forget(self) -> None:
        """Begin another look."""
        self._known.clear()
        state = self.engine.state
        for uid in [uid for uid in self._missing if state.pod_row(uid) is None]:
            del self._missing[uid]

    async def read(self, namespace: str, members: Collection[PodUid]) -> list[Pod]:
        """Return those of some pods that were found. Raises ``KubeError``."""
        labels = self.engine.state.shared_labels(members)
        selector = ",".join(f"{key}={value}" for key, value in labels)
        found = await self._list(namespace, selector)
        missing = [uid for uid in members if uid not in found]
        if selector and any(self._is_overdue(uid) for uid in missing):
            found = await self._list(namespace, "")
            self._missing |= dict.fromkeys((uid for uid in members if uid not in found), _GONE)
        elif not selector:
            self._missing |= dict.fromkeys(missing, _GONE)
        for uid in members:
            if uid in found:
                self._missing.pop(uid, None)
        return [found[uid] for uid in members if uid in found]

    def knows(self, members: Collection[PodUid]) -> bool:
        """Return whether each of some pods that were read was found, or is gone for certain."""
        return all(self._missing.get(uid, _GONE) == _GONE for uid in members)

    def _is_overdue(self, uid: PodUid) -> bool:
        """Return whether a pod that is missing has been so for too long to have just gone."""
        now = self.engine.clock()
        return now - self._missing.setdefault(uid, now) >= MISSING_S

    async def _list(self, namespace: str, selector: str) -> Pods:
        """Return pods as they are listed; gangs that end together share a list."""
        key = (namespace, selector)
        if key not in self._known:
            self._known[key] = asyncio.ensure_future(self._listed(namespace, selector))
        try:
            return await self._known[key]
        except BaseException:
            self._known.pop(key, None)
            raise

    async def _listed(self, namespace: str, selector: str) -> Pods:
        asked = {"labelSelector": selector} if selector else {}
        pods = await self.client.list(PODS, namespace=namespace, **asked)
        return {pod_uid(pod.metadata.uid): pod for pod in pods}
