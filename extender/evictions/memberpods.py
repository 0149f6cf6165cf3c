"""Reads the members of gangs from the API server, whole pods: the model has no names.

::

    how many pods are there for each node of the members?
        ├─ many: the pods of each node that have the labels that all members share
        └─ few, or a member has no node: the pods of the namespace that have them
               │ one is missing
               ├─ for less than ``MISSING_S``: it has just gone, and the watch shows it soon
               └─ for longer: its labels may have changed; all pods of the namespace are read
                      └─ missing there, too: it is gone

kube-apiserver finds the pods of a node by an index (pkg/registry/core/pod/strategy.go,
``Indexers``), and looks at each pod of a namespace for a label: of 200,000 that takes as long as
some hundred requests, and each gang that gives way is read twice. Members that have just gone are
missing all the time where gangs give way, so a namespace is not read for them.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Engine
from extender.releases.eviction import at_once, pods_of
from muster.cluster.ids import PodUid
from muster.kube.client import KubeClient
from muster.kube.resources import PODS
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod

MISSING_S: Final = 5.0  # seconds: how late a watch is at most, as a rule
PODS_A_NODE: Final = 500  # pods that the API server looks at in the time of one more request
_GONE: Final = math.inf
_SOUGHT: Final = (("", "missing"),)

Pods = dict[PodUid, Pod]
Selectors = tuple[tuple[str, str], ...]


@dataclass(slots=True, eq=False)
class MemberPods:
    """The pods that were read in one look of the evictor."""

    client: KubeClient
    engine: Engine
    #: By namespace and selectors.
    _known: dict[tuple[str, Selectors], asyncio.Future[Pods]] = field(default_factory=dict)
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
        found = await self._with_labels(namespace, selector, members)
        missing = [uid for uid in members if uid not in found]
        if not selector:
            self._missing |= dict.fromkeys(missing, _GONE)
        elif any(self._is_overdue(uid) for uid in missing):
            found = found | await self._sought(namespace)
            self._missing |= dict.fromkeys((uid for uid in members if uid not in found), _GONE)
        there = [uid for uid in members if uid in found]
        for uid in there:
            self._missing.pop(uid, None)
        return [found[uid] for uid in there]

    def knows(self, members: Collection[PodUid]) -> bool:
        """Return whether each of some pods that were read was found, or is gone for certain."""
        return all(self._missing.get(uid, _GONE) == _GONE for uid in members)

    def _is_overdue(self, uid: PodUid) -> bool:
        """Return whether a pod that is missing has been so for too long to have just gone."""
        now = self.engine.clock()
        return now - self._missing.setdefault(uid, now) >= MISSING_S

    async def _with_labels(
        self, namespace: str, selector: str, members: Collection[PodUid]
    ) -> Pods:
        labels = (("labelSelector", selector),) if selector else ()
        nodes = self._nodes(members) if selector else ()
        if not nodes:
            return await self._list(namespace, labels)
        on = [(*labels, ("fieldSelector", f"spec.nodeName={node}")) for node in nodes]
        lists = await at_once(lambda each: self._list(namespace, each), on)
        return {uid: pod for found in lists for uid, pod in found.items()}

    def _nodes(self, members: Collection[PodUid]) -> Sequence[str]:
        """Return the nodes of some pods if that is the cheaper way to them, else none."""
        state = self.engine.state
        nodes = {state.bound_node(uid) for uid in members}
        named = sorted(node for node in nodes if node is not None)
        is_cheap = len(named) * PODS_A_NODE < state.pod_count
        return named if is_cheap and len(named) == len(nodes) else ()

    async def _list(self, namespace: str, selectors: Selectors) -> Pods:
        """Return pods as they are listed."""
        return await self._shared(
            (namespace, selectors),
            lambda: self.client.list(PODS, namespace=namespace, **dict(selectors)),
        )

    async def _sought(self, namespace: str) -> Pods:
        """Return those pods of a namespace that are missing anywhere."""
        missing = frozenset(self._missing)
        return await self._shared(
            (namespace, _SOUGHT), lambda: pods_of(self.client, namespace, missing)
        )

    async def _shared(
        self, key: tuple[str, Selectors], listed: Callable[[], Awaitable[Sequence[Pod]]]
    ) -> Pods:
        """Return what a list has; gangs that end together share it."""
        if key not in self._known:
            self._known[key] = asyncio.ensure_future(_by_uid(listed()))
        try:
            return await self._known[key]
        except BaseException:
            self._known.pop(key, None)
            raise


async def _by_uid(listed: Awaitable[Sequence[Pod]]) -> Pods:
    return {pod_uid(pod.metadata.uid): pod for pod in await listed}
