"""Events of gangs with only bound members: the pod is read from the API server.

::

    no member waits ──► due ──► LIST of a member's node ──► Event on it and its controller
                         ▲          └ failed ──┐ └ it was deleted since: the next time
                         └─────────────────────┘

The model does not have the names of bound pods. Such Events are rare: a gang lost hot spares, or
has too few members. If a gang has no bound member any more, its Event is dropped. If a member
waits, the reporter records the Event on it directly.
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
LISTS_PER_S: Final = 5  # after a power loss of a rack all its Events take some seconds
PAUSE_S: Final = 10.0  # after a failure


@dataclass(frozen=True, slots=True)
class EventText:
    """The contents of an Event about a gang."""

    gang: GangKey
    #: a CamelCase word, ``reason`` of the Event
    reason: str
    #: ``note`` of the Event
    text: str
    #: whether its type is Warning; else it is Normal
    warning: bool


Record = Callable[[Pod, EventText], None]


@dataclass(slots=True)
class DueEvents:
    """The Events that wait for a bound member, one per gang and reason."""

    #: by gang and reason, in the order of their arrival
    events: dict[tuple[GangKey, str], EventText] = field(default_factory=dict)

    def put(self, event: EventText) -> None:
        """Have an Event recorded soon; it replaces one of the same gang and reason."""
        self.events[event.gang, event.reason] = event


@dataclass(slots=True)
class BoundGangs:
    """Records the Events that are due; only the leader calls ``run``."""

    engine: Engine
    client: KubeClient
    #: the Events to record; the reporter puts them there
    due: DueEvents
    #: records an Event on a bound pod
    record: Record

    async def run(self) -> None:
        """Record forever."""
        await record_forever(self.record_due, "bound gangs not reported")

    async def record_due(self) -> None:
        """Record some of the Events that are due. Raises ``KubeError``; the rest stays due."""
        due = self.due.events
        for key in list(due)[:LISTS_PER_S]:
            event = due[key]
            uid = self._member(event.gang)
            pod = None if uid is None else await self._find(uid)
            if pod is not None:
                self.record(pod, event)
            if due.get(key) is event and (pod is not None or uid is None):
                del due[key]

    def _member(self, gang: GangKey) -> PodUid | None:
        view = self.engine.state.gang(gang)
        if view is None or not len(view.bound):
            return None
        return self.engine.state.pod_uid(int(view.bound[0]))

    async def _find(self, uid: PodUid) -> Pod | None:
        """Return a bound pod as the API server has it; None if it was deleted in the meantime."""
        hold = self.engine.state.hold(uid)
        if hold is None:
            return None
        pods = await pods_on(self.client, hold.node)
        return next((pod for pod in pods if pod_uid(pod.metadata.uid) == uid), None)


async def pods_on(client: KubeClient, node: str) -> Sequence[Pod]:
    """Return the pods of a node. Raises ``KubeError``."""
    return await client.list(PODS, fieldSelector=f"spec.nodeName={node}")


async def record_forever(record: Callable[[], Awaitable[object]], failed: str) -> None:
    """Call ``record`` every second; each call handles about ``LISTS_PER_S`` nodes.

    When it raises ``KubeError``, the Events that it did not record must stay due. ``failed`` is the
    log line then.
    """
    while True:
        await asyncio.sleep(PERIOD_S)
        try:
            await record()
        except KubeError as error:
            log.warning(failed, extra={"error": str(error)})
            await asyncio.sleep(PAUSE_S)
