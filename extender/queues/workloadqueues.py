"""The queues of Kueue's Workloads: read into the claims' ledger, and their statuses written.

Statuses of ClusterQueues show what is used with little lag, as those who watch utilisation read
them: each is written at most every ``statusSeconds``, and only if it differs. Those of LocalQueues
take ten times as long. One that Kueue's own manager writes is left alone, and so are its Workloads.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from extender.config.queueing import KueueQueueing
from extender.engine import Clock
from extender.queues.localuse import NOTE_S, LocalUse
from extender.queues.workloadadmission import WorkloadAdmission
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuespec import QueueName
from muster.kube import wire
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import KubeError
from muster.kube.resources import Resource
from muster.queueing.claims.book import ClaimSums
from muster.queueing.claims.checks import CheckRule
from muster.queueing.claims.cycle import QueueTerms
from muster.workloads.claims.admissioncheck import AdmissionCheck, missing_checks
from muster.workloads.queues import kueue
from muster.workloads.queues.describedqueues import DescribedQueues, source
from muster.workloads.queues.reading import QueueReading, queue_name
from muster.workloads.queues.registry import QueueKind
from muster.workloads.queues.sight import (
    Fields,
    GangCounts,
    QueueSight,
    Verdict,
    changes,
    verdict,
)
from muster.workloads.queues.statuses import STATUSES

log = logging.getLogger(__name__)

LOCAL_TIMES: Final = 10  # a LocalQueue is looked at every so many times
PAUSE_S: Final = 5.0  # after a failure
_AT_ONCE: Final = 8  # PATCHes in flight
_CLUSTER_QUEUES: Final = f"clusterqueues.{kueue.GROUP}"
_ELSEWHERE: Final = "another controller writes the status of the ClusterQueue, and admits"


@dataclass(slots=True)
class _Tracked:
    kind: QueueKind[Any]
    resource: Resource[Any]
    #: the object, with its status as we wrote it last
    found: Any
    reading: QueueReading
    is_ours: bool
    #: the version that our last write made
    written: int = 0

    @property
    def queue(self) -> QueueName:
        """The ClusterQueue that it is, or names."""
        if isinstance(self.found, kueue.ClusterQueue):
            return queue_name(kueue.DIALECT, self.found.metadata.name)
        return queue_name(kueue.DIALECT, self.found.spec.cluster_queue)


class WorkloadQueues:
    """Kueue's queues as Workloads see them."""

    def __init__(
        self,
        admission: WorkloadAdmission,
        client: KubeClient,
        clock: Clock,
        config: KueueQueueing,
        described: DescribedQueues,
        local_use: LocalUse | None = None,
    ) -> None:
        """``local_use``: the LocalQueues' average use; ``None``: past use does not count."""
        self._admission = admission
        self._local_use = local_use
        self._book = admission.book
        self._client = client
        self._clock = clock
        self._config = config
        self._described = described
        self._tracked: dict[str, _Tracked] = {}
        self._checks: dict[str, AdmissionCheck] = {}

    # -- the watches -----------------------------------------------------------------------------

    def seen(
        self,
        kind: QueueKind[Any],
        served: Resource[Any],
        found: Any,
        reading: QueueReading,
        *,
        is_elsewhere: bool,
    ) -> None:
        """Note an object of Kueue as it is now; ``is_elsewhere``: its own controller admits."""
        meta: wire.ObjectMeta = found.metadata
        for event in self._described.seen(kind.name, meta, reading):
            self._book.queue(event)
        if isinstance(found, kueue.ClusterQueue | kueue.LocalQueue):
            self._track(kind, served, found, reading, is_ours=not is_elsewhere)
        if self._local_use is not None:
            self._local_use.seen(found)
        if isinstance(found, kueue.ClusterQueue):
            self._set_terms(found, reading, is_elsewhere=is_elsewhere)
        elif isinstance(found, kueue.ResourceFlavor):
            self._book.look_again()
        self._admission.wake()

    def gone(self, kind: QueueKind[Any], meta: wire.ObjectMeta) -> None:
        """Forget a deleted object."""
        self._tracked.pop(source(kind.name, meta), None)
        for event in self._described.gone(kind.name, meta):
            self._book.queue(event)
        self._admission.wake()

    def check_seen(self, found: AdmissionCheck) -> None:
        """Note an AdmissionCheck as it is now."""
        self._checks[found.metadata.name] = found
        self._look_at_checks(found.metadata.name)

    def check_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a deleted AdmissionCheck."""
        self._checks.pop(meta.name, None)
        self._look_at_checks(meta.name)

    def _look_at_checks(self, name: str) -> None:
        """Open or close the ClusterQueues that name a check."""
        for one in self._tracked.values():
            found = one.found
            if isinstance(found, kueue.ClusterQueue) and name in kueue.admission_checks(found):
                self._set_terms(found, one.reading, is_elsewhere=not one.is_ours)
        self._admission.wake()

    def _set_terms(
        self, found: kueue.ClusterQueue, reading: QueueReading, *, is_elsewhere: bool
    ) -> None:
        lacks = self._lacks(found)
        problem = "" if lacks is None else f"ClusterQueue {found.metadata.name} {lacks.message}"
        terms = _terms(found, reading, problem, is_elsewhere=is_elsewhere)
        self._book.set_terms(queue_name(kueue.DIALECT, found.metadata.name), terms)

    def _lacks(self, found: kueue.ClusterQueue) -> Verdict | None:
        """Return which checks a ClusterQueue lacks, ``None``: none."""
        return missing_checks(found.metadata.name, kueue.admission_checks(found), self._checks)

    def _track(
        self,
        kind: QueueKind[Any],
        served: Resource[Any],
        found: Any,
        reading: QueueReading,
        *,
        is_ours: bool,
    ) -> None:
        name, resource = source(kind.name, found.metadata), served
        if not found.metadata.namespace:
            resource = replace(served, namespaced=False)
        before, version = self._tracked.get(name), found.metadata.resource_version
        written = 0
        if before is not None and before.found.metadata.uid == found.metadata.uid:
            written = before.written
            if version.isdecimal() and int(version) < written:
                found = msgspec.structs.replace(found, status=before.found.status)
        self._tracked[name] = _Tracked(kind, resource, found, reading, is_ours, written)

    # -- statuses --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write the statuses that differ, forever."""
        turn = 0
        while True:
            try:
                await self.write(with_local=turn % LOCAL_TIMES == 0)
            except KubeError as error:
                log.warning("statuses of queues not written", extra={"error": str(error)})
                await asyncio.sleep(PAUSE_S)
            turn += 1
            await asyncio.sleep(self._config.status_seconds)

    def use_jobs(self) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return the job that takes note of use, by name; none where past use does not count."""
        local = self._local_use
        if local is None:
            return {}

        async def run() -> None:
            while True:
                self.note_use()
                await asyncio.sleep(min(NOTE_S, local.interval_s))

        return {"workload-use": run}

    def note_use(self) -> None:
        """Take note of what everybody uses who names a queue."""
        if self._local_use is not None:
            self._book.note_use(self._clock())
            self._local_use.noted()
            self._admission.wake()

    async def write(self, *, with_local: bool) -> None:
        """Write the statuses that differ now. Raises ``KubeError``."""
        users = self._book.sums() if with_local else {}
        due = []
        for tracked in list(self._tracked.values()):
            is_local = isinstance(tracked.found, kueue.LocalQueue)
            if tracked.is_ours and (with_local or not is_local):
                wanted = STATUSES[tracked.kind.name](tracked.found, self._sight(tracked, users))
                fields = changes(tracked.found.status, wanted)
                if fields:
                    due.append((tracked, fields))
        for start in range(0, len(due), _AT_ONCE):
            await asyncio.gather(
                *(self._patch(tracked, fields) for tracked, fields in due[start : start + _AT_ONCE])
            )

    async def _patch(self, tracked: _Tracked, fields: Fields) -> None:
        meta = tracked.found.metadata
        after = await self._client.patch(
            tracked.resource,
            meta.name,
            {"metadata": {"uid": meta.uid}, "status": dict(fields)},
            namespace=meta.namespace or None,
            content_type=MERGE,
            subresource="status",
        )
        now = self._tracked.get(source(tracked.kind.name, meta))
        if now is not None and now.found.metadata.uid == meta.uid:
            version = after.metadata.resource_version
            now.written = int(version) if version.isdecimal() else 0
            now.found = msgspec.structs.replace(now.found, status={**now.found.status, **fields})

    def _sight(self, tracked: _Tracked, users: Mapping[QueueUser, ClaimSums]) -> QueueSight:
        """Return a queue as it is now, or what those hold who name it as a LocalQueue says."""
        tree, catalogue, queue = self._book.ledger.held, self._described.catalogue, tracked.queue
        node, meta = tree.find(queue), tracked.found.metadata
        unchecked, average = Counter[Cell](), None
        if isinstance(tracked.found, kueue.LocalQueue):
            user = QueueUser(kueue.DIALECT, meta.namespace, meta.name)
            sums = users.get(user, ClaimSums())
            gangs, named = GangCounts(waiting=sums.waiting, running=sums.holding), sums.cells
            if self._local_use is not None:
                average = self._local_use.sight(node, f"{meta.namespace}/{meta.name}")
        else:
            waiting, holding = self._book.pending(queue), self._book.holding(queue)
            number, unchecked = self._book.unchecked(queue)
            gangs = GangCounts(waiting=waiting, running=holding, unchecked=number)
            named = Counter[Cell]()
        return QueueSight(
            node=node,
            used={} if node is None else dict(node.usage),
            named=named,
            unchecked=unchecked,
            gangs=gangs,
            verdict=self._verdict(tracked),
            problems=tracked.reading.problems,
            missing_flavors=catalogue.missing_flavors(queue),
            unobeyed=tracked.reading.unobeyed,
            now=self._clock(),
            version=tracked.resource.version,
            average=average,
        )

    def _verdict(self, tracked: _Tracked) -> Verdict:
        """Return whether a ClusterQueue admits anybody, or the one that a LocalQueue names."""
        queue, name = tracked.queue, source(tracked.kind.name, tracked.found.metadata)
        problems = self._described.catalogue.problems(name)
        found = verdict(self._book.ledger.held, queue, problems)
        if not found.is_ready:
            return found
        described = self._tracked.get(f"{_CLUSTER_QUEUES}/{queue.partition('/')[2]}")
        lacks = None if described is None else self._lacks(described.found)
        return lacks or found


def _terms(
    found: kueue.ClusterQueue, reading: QueueReading, problem: str, *, is_elsewhere: bool
) -> QueueTerms:
    rules = kueue.admission_checks(found).items()
    is_drained = found.spec.stop_policy == "HoldAndDrain" and not is_elsewhere
    return QueueTerms(
        namespaces=reading.namespaces.get(queue_name(kueue.DIALECT, found.metadata.name), ()),
        problem=_ELSEWHERE if is_elsewhere else problem,
        drains="ClusterQueueStopped" if is_drained else "",
        checks=tuple(CheckRule(name, flavors) for name, flavors in rules),
        is_elsewhere=is_elsewhere,
    )
