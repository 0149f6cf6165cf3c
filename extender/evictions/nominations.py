"""Says on pods that wait for which node others give way: ``status.nominatedNodeName``.

::

    others are to give way to a gang ─► its members are nominated ─► the others end
         ┌──────────────────────────────────────────────────────────┘
         ├─► released: the binding clears it
         └─► the others have ended, and it still waits: taken back

kube-scheduler counts a nominated pod as if it were on its node when it looks at pods of an equal or
lower priority, also at those that are not Muster's (pkg/scheduler/framework/runtime,
``addGENominatedPods``), and a pod with a scheduling gate as well: an update of it reaches the
nominator (backend/queue/scheduling_queue.go, ``Update``, ``UpdateNominatedPod``). It is a hint: the
plan decides where the pod goes.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Engine
from extender.evictions.memberpods import MemberPods
from extender.pendingpods import PendingPod, PendingPods
from muster.cluster.ids import GangKey, PodUid
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.translation.translate import pod_uid
from muster.kube.writing.podwrites import PodVanished, Released, nominate_pod

log = logging.getLogger(__name__)

KEPT_S: Final = 10.0  # after the last victim has gone: a gang starts within a second
AT_ONCE: Final = 32  # PATCHes that are under way together
NOBODY: Final = ""  # the node of a nomination that is taken back


@dataclass(slots=True)
class NominatedGang:
    """A gang for which room is made."""

    #: by member, its node
    places: Mapping[PodUid, str]
    #: the members that are nominated
    written: set[PodUid] = field(default_factory=set)
    #: since when no gang gives way to it, ``None``: one does now
    idle_since: float | None = None


class RoomNominations:
    """The nominations of all gangs that get others' room."""

    def __init__(self, engine: Engine, client: KubeClient, pods: PendingPods) -> None:
        self._engine, self._client, self._pods = engine, client, pods
        self._gangs: dict[GangKey, NominatedGang] = {}

    def __len__(self) -> int:
        """Return the number of gangs whose members are nominated, or will be."""
        return len(self._gangs)

    def note(self, gang: GangKey, places: Mapping[PodUid, str]) -> None:
        """Have the members of a gang nominated to the nodes that others leave for it."""
        before = self._gangs.get(gang)
        written = set() if before is None else before.written
        kept = {uid for uid in written if before and before.places[uid] == places.get(uid)}
        self._gangs[gang] = NominatedGang(places, kept)

    async def look(self, served: Collection[GangKey]) -> None:
        """Nominate who is to be, and take back what is in vain; what fails is tried again.

        ``served``: the gangs to which others give way now.
        """
        for gang in served:
            if gang and gang not in self._gangs:
                await self._adopt(gang)
        for gang, one in list(self._gangs.items()):
            gated = [uid for uid in one.places if self._gated(uid) is not None]
            if not gated:
                del self._gangs[gang]  # released, or gone
            elif gang in served:
                one.idle_since = None
                await self._write(one, [uid for uid in gated if uid not in one.written])
            else:
                await self._take_back(gang, one)

    async def _adopt(self, gang: GangKey) -> None:
        """Find what an earlier leader wrote for a gang to which others give way."""
        view = self._engine.state.gang(gang)
        if view is None or view.spec is None:
            return
        members = {self._engine.state.pod_uid(int(row)) for row in view.waiting}
        try:
            pods = await MemberPods(self._client, self._engine).read(view.spec.namespace, members)
        except KubeError as error:
            log.warning("nominations not read", extra={"gang": gang, "error": str(error)})
            return
        named = {pod_uid(pod.metadata.uid): pod.status.nominated_node_name for pod in pods}
        places = {uid: node for uid, node in named.items() if node}
        self._gangs[gang] = NominatedGang(places, set(places))

    async def _take_back(self, gang: GangKey, one: NominatedGang) -> None:
        """Take the nominations of a gang back that waits on, once it had time to start."""
        now = self._engine.clock()
        one.idle_since = now if one.idle_since is None else one.idle_since
        if now - one.idle_since < KEPT_S:
            return
        view = self._engine.state.gang(gang)
        rows = () if view is None else view.waiting.tolist()
        waiting = {self._engine.state.pod_uid(row) for row in rows}
        await self._write(one, [uid for uid in one.written if uid in waiting], back=True)
        if not one.written & waiting:
            del self._gangs[gang]

    async def _write(
        self, one: NominatedGang, uids: Sequence[PodUid], *, back: bool = False
    ) -> None:
        for start in range(0, len(uids), AT_ONCE):
            some = uids[start : start + AT_ONCE]
            nodes = [NOBODY if back else one.places[uid] for uid in some]
            done = await asyncio.gather(*map(self._nominate, some, nodes))
            changed = {uid for uid, is_done in zip(some, done, strict=True) if is_done}
            one.written = one.written - changed if back else one.written | changed

    async def _nominate(self, uid: PodUid, node: str) -> bool:
        """Nominate a pod if it is gated still; returns whether nothing is left to do."""
        pod = self._gated(uid)
        if pod is None:
            return True
        version = "" if node else pod.version  # a release that is under way may nominate it anew
        outcome = await nominate_pod(self._client, pod.ref, node, version)
        return isinstance(outcome, Released | PodVanished)

    def _gated(self, uid: PodUid) -> PendingPod | None:
        pod = self._pods.get(uid)
        return pod if pod is not None and pod.gated else None
