"""Events of gangs all of whose members are bound: one of them is looked up where it stands.

::

    no member waits ──► kept ──► LIST of a member's node ──► Event on it and its controller
                          ▲          └ failed ──┐ └ it went meanwhile: the next time
                          └─────────────────────┘

Names of bound pods are not in the model, and such an Event is rare: hot spares that are lost, a
gang that has run short of members. Of a gang that has no bound member any more there is nothing
to report; a member that waits gets its Event directly.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Engine
from muster.cluster.ids import GangKey, PodUid
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.resources import PODS
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
LISTS_PER_S: Final = 5  # for the members of a rack that loses its power it takes some seconds
PAUSE_S: Final = 10.0  # after a failure


@dataclass(frozen=True, slots=True)
class EventText:
    """What an Event says of a gang."""

    gang: GangKey
    reason: str
    text: str
    warning: bool


Record = Callable[[Pod, EventText], None]


@dataclass(slots=True)
class DueEvents:
    """The Events that wait for a bound member, one per gang and reason."""

    #: in the order of their arrival
    events: dict[tuple[GangKey, str], EventText] = field(default_factory=dict)

    def put(self, told: EventText) -> None:
        """Have an Event recorded soon; one for the same gang and reason is replaced."""
        self.events[told.gang, told.reason] = told


@dataclass(slots=True)
class BoundGangs:
    """Records the Events that are due; ``run`` is the leader's."""

    engine: Engine
    client: KubeClient
    #: what the reporter has put there
    due: DueEvents
    #: records an Event on a bound pod
    record: Record

    async def run(self) -> None:
        """Record for ever."""
        await tell_for_ever(self.tell, "bound gangs not told")

    async def tell(self) -> None:
        """Record some of what is due. Raises ``KubeError``; what was not recorded stays due."""
        due = self.due.events
        for key in list(due)[:LISTS_PER_S]:
            told = due[key]
            uid = self._member(told.gang)
            pod = None if uid is None else await self._find(uid)
            if pod is not None:
                self.record(pod, told)
            if due.get(key) is told and (pod is not None or uid is None):
                del due[key]

    def _member(self, gang: GangKey) -> PodUid | None:
        view = self.engine.state.gang(gang)
        if view is None or not len(view.bound):
            return None
        return self.engine.state.pod_uid(int(view.bound[0]))

    async def _find(self, uid: PodUid) -> Pod | None:
        """Return a bound pod as the API server has it; None where it went meanwhile."""
        hold = self.engine.state.hold(uid)
        if hold is None:
            return None
        pods = await pods_on(self.client, hold.node)
        return next((pod for pod in pods if pod_uid(pod.metadata.uid) == uid), None)


async def pods_on(client: KubeClient, node: str) -> Sequence[Pod]:
    """Return the pods of a node. Raises ``KubeError``."""
    return await client.list(PODS, fieldSelector=f"spec.nodeName={node}")


async def tell_for_ever(tell: Callable[[], Awaitable[object]], failed: str) -> None:
    """Record what is due on bound pods, about ``LISTS_PER_S`` nodes at a time.

    ``tell`` keeps what it could not record when it raises ``KubeError``; ``failed``: the log line.
    """
    while True:
        await asyncio.sleep(PERIOD_S)
        try:
            await tell()
        except KubeError as error:
            log.warning(failed, extra={"error": str(error)})
            await asyncio.sleep(PAUSE_S)
