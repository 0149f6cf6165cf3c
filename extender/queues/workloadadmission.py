"""Admits Kueue's Workloads: watches them, decides, and writes each decision once.

::

    watch of Workloads ──► ClaimBook ◄── watch of ClusterQueues, LocalQueues … (``workloadqueues``)
                               │ a few milliseconds after a change
                               ▼
                           decisions ──► one PATCH of the status each, many in flight
                                            │ written ──► ClaimBook
                                            └ refused ──► ClaimBook: decided anew

The leader alone decides. A restart loses nothing: what a Workload holds stands in its status. A
Workload that has waited for ``REASON_AFTER_S``, or that waits for somebody to change an object, is
written why; of those that ask for the same only the first is, as writes are what costs.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.config.queueing import KueueQueueing
from extender.engine import Clock
from muster.cluster.claims import ClaimKey
from muster.kube import wire
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import Conflict, KubeError, NotFound
from muster.queueing.averageuse.userhistory import UseTerms
from muster.queueing.claims.book import ClaimBook
from muster.queueing.claims.checks import CheckStep
from muster.queueing.claims.cycle import ClaimChecked, ClaimDecision, ClaimEvicted, ClaimRefusal
from muster.queueing.claims.flavorchoice import Taints
from muster.workloads.claims import workloadstatus
from muster.workloads.claims.kueueworkload import WORKLOADS, KueueWorkload, claim, key_of
from muster.workloads.claims.workloadstatus import MANAGER, applied

log = logging.getLogger(__name__)

DEBOUNCE_S: Final = 0.005  # changes that arrive together share one pass over the queues
CONFLICT_S: Final = 0.02  # until the watch shows what has changed
PAUSE_S: Final = 2.0  # after another failure, to leave an API server in trouble alone
REASON_AFTER_S: Final = 10.0
REASONS_PER_SECOND: Final = 10
LOOK_AGAIN_S: Final = 5.0  # labels of namespaces may have changed


@dataclass(frozen=True, slots=True)
class WorkloadParts:
    """The parts that are called."""

    client: KubeClient
    #: seconds since the epoch
    clock: Clock
    #: the labels of a namespace
    labels: Callable[[str], Mapping[str, str]]
    #: the taints of a flavor's nodes
    taints: Taints


class WorkloadAdmission:
    """All Workloads of a cluster."""

    def __init__(
        self, parts: WorkloadParts, config: KueueQueueing, use: UseTerms | None = None
    ) -> None:
        """``use``: how past use counts; ``None``: not at all."""
        self._parts = parts
        fair = config.preemption_strategies if config.fair_sharing else ()
        self.book = ClaimBook(parts.taints, parts.labels, fair, use)
        self._objects: dict[ClaimKey, KueueWorkload] = {}
        #: decisions that are not written yet, in order
        self._due: dict[ClaimKey, list[ClaimDecision]] = {}
        self._slots = asyncio.Semaphore(config.concurrency)
        self._tasks: set[asyncio.Task[None]] = set()
        self._refused_at: dict[ClaimKey, float] = {}
        self._wake = asyncio.Event()

    # -- the watch -------------------------------------------------------------------------------

    def seen(self, found: KueueWorkload) -> None:
        """Note a Workload as it is now."""
        key, now = key_of(found.metadata), claim(found)
        if now.grant is None and not now.asks:
            self._forget(key)
        else:
            self._objects[key] = found
            self.book.seen(now)
        self.wake()

    def gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a deleted Workload."""
        self._forget(key_of(meta))
        self.wake()

    def wake(self) -> None:
        """Decide soon, if anything is due."""
        if self.book.is_due:
            self._wake.set()

    def _forget(self, key: ClaimKey) -> None:
        self._objects.pop(key, None)
        self._refused_at.pop(key, None)
        self.book.gone(key)

    # -- decisions -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Decide whenever something has changed, forever."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(DEBOUNCE_S)
            self._wake.clear()
            self.decide()

    def decide(self) -> None:
        """Decide, and have the decisions written."""
        for decision in self.book.decide(self._parts.clock()):
            due = self._due.setdefault(decision.key, [])
            due.append(decision)
            if len(due) == 1:
                task = asyncio.create_task(self._write(decision.key))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _write(self, key: ClaimKey) -> None:
        """Write what was decided about a Workload, one decision after another."""
        async with self._slots:
            version = await self._written(key)
        self._due.pop(key, None)
        if version is None:
            self.book.failed(key)
        else:
            self.book.written(key, version)
        self.wake()

    async def _written(self, key: ClaimKey) -> int | None:
        """Return the version of the last write, ``None``: one of them was not stored."""
        found, due = self._objects.get(key), self._due[key]
        while due and found is not None:
            wanted = self._wanted(found, due[0])
            if wanted is None:
                return None
            if _deactivates(due[0]):
                wanted = await self._deactivated(wanted)
            found = None if wanted is None else await self._apply(wanted)
            del due[0]
        return None if found is None else int(found.metadata.resource_version)

    def _wanted(self, found: KueueWorkload, decision: ClaimDecision) -> KueueWorkload | None:
        """Return a Workload as decided, ``None``: something else has to be decided now."""
        now = self._parts.clock()
        if isinstance(decision, ClaimEvicted):
            preemptor = None if decision.by is None else self._objects.get(decision.by)
            uid = "" if preemptor is None else preemptor.metadata.uid
            if decision.by is not None and not uid:
                return None  # whom it would make room for is gone
            return workloadstatus.evicted(found, decision.reason, uid, now)
        if not claim(found).asks:
            return None
        if isinstance(decision, ClaimChecked):
            return _checked(found, decision, now)
        return workloadstatus.granted(found, decision.grant, now, decision.checks)

    async def _deactivated(self, wanted: KueueWorkload) -> KueueWorkload | None:
        """Have a Workload ask no more; return it as it is then, ``None``: that is not stored.

        If the extender ends here, the next leader finds one that is not active, and stops it.
        """
        meta = wanted.metadata
        same = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": same, "spec": {"active": False}}
        try:
            after = await self._parts.client.patch(
                WORKLOADS, meta.name, body, namespace=meta.namespace, content_type=MERGE
            )
        except (Conflict, NotFound):
            await asyncio.sleep(CONFLICT_S)
            return None
        except KubeError as error:
            about = {"workload": key_of(meta), "error": str(error)}
            log.warning("Workload not deactivated", extra=about)
            await asyncio.sleep(PAUSE_S)
            return None
        return msgspec.structs.replace(wanted, metadata=after.metadata)

    async def _apply(self, wanted: KueueWorkload) -> KueueWorkload | None:
        """Write a status; return the Workload with its new version, ``None``: it is not stored."""
        meta = wanted.metadata
        try:
            after = await self._parts.client.apply(
                WORKLOADS,
                meta.name,
                applied(wanted),
                manager=MANAGER,
                namespace=meta.namespace,
                subresource="status",
            )
        except (Conflict, NotFound):
            await asyncio.sleep(CONFLICT_S)
            return None
        except KubeError as error:
            about = {"workload": key_of(meta), "error": str(error)}
            log.warning("status of a Workload not written", extra=about)
            await asyncio.sleep(PAUSE_S)
            return None
        version = after.metadata.resource_version
        return msgspec.structs.replace(
            wanted, metadata=msgspec.structs.replace(meta, resource_version=version)
        )

    # -- reasons ---------------------------------------------------------------------------------

    async def run_reasons(self) -> None:
        """Write every second why Workloads wait, and look at those that waited for a time."""
        looked = self._parts.clock()
        while True:
            await asyncio.sleep(1.0)
            await self.write_reasons()
            if self.book.next_at <= self._parts.clock():
                self._wake.set()
            if self._parts.clock() - looked >= LOOK_AGAIN_S:
                looked = self._parts.clock()
                if any(one.is_lasting for one in self.book.refusals.values()):
                    self.book.look_again()
                    self.wake()

    async def write_reasons(self) -> None:
        """Write into some Workloads why they wait."""
        now, left = self._parts.clock(), REASONS_PER_SECOND
        for key, refusal in list(self.book.refusals.items()):
            since = self._refused_at.setdefault(key, now)
            found = self._objects.get(key)
            is_late = refusal.is_lasting or now - since >= REASON_AFTER_S
            if left and found is not None and is_late and self._is_news(key, found, refusal):
                left -= 1
                await self._apply(
                    workloadstatus.waiting(found, refusal.reason, refusal.message, now)
                )

    def _is_news(self, key: ClaimKey, found: KueueWorkload, refusal: ClaimRefusal) -> bool:
        return key not in self._due and not workloadstatus.says(found, refusal.reason)


def _checked(found: KueueWorkload, decision: ClaimChecked, now: float) -> KueueWorkload:
    """Return a Workload as its checks call for."""
    if decision.step is CheckStep.ADMIT:
        return workloadstatus.admitted(found, now)
    if decision.step is CheckStep.LIST:
        return workloadstatus.listing(found, decision.checks, now)
    return workloadstatus.unchecked(found, now, is_final=_deactivates(decision))


def _deactivates(decision: ClaimDecision) -> bool:
    return isinstance(decision, ClaimChecked) and decision.step is CheckStep.DEACTIVATE
