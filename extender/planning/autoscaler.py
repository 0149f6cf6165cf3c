"""Asks an autoscaler for the nodes that gangs lack.

Cluster Autoscaler and Karpenter act on pods that kube-scheduler marks unschedulable. Gated pods
never reach kube-scheduler, so the nodes are requested here. For a gang that has waited
``afterSeconds`` for nodes that do not exist (``muster.placement.reasons.missingnodes``)::

    ProvisioningRequest served, a class configured          else, if releaseUnpinned
      │                                                        │
      ▼ one request for the whole gang                         ▼ gates removed, no pin: ``filter``
    MADE ─► Accepted ─► Provisioned                         rejects the pods as members of a
      │        │            │ booking expired               waiting gang, so that every
      │        └► Failed ───┴──► deleted, made again        autoscaler sees them
      │                          after retrySeconds
      ▼ planned, gone, or other members: deleted

A request is owned by the gang's controller and is deleted with it. Only the time since when a gang
lacks nodes is held in memory. The requests are read from the API server at each look.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar

import numpy as np

from extender.config.settings import Autoscaler
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPod, PendingPods
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.kube.client import KubeClient
from muster.kube.errors import AlreadyExists, KubeError, NotFound
from muster.kube.kinds import provisioning
from muster.kube.kinds.provisioning import (
    ProvisioningProgress,
    ProvisioningRequest,
    ProvisioningStanding,
    WantedNodes,
)
from muster.kube.resources import PODS, KubeObject, Resource
from muster.kube.writing.podbodies import open_body
from muster.placement.decision import Decision
from muster.placement.reasons.missingnodes import demand, lacks_nodes
from muster.workloads.devices.accelerators import Accelerators

T = TypeVar("T", bound=KubeObject)

log = logging.getLogger(__name__)

PERIOD_S: Final = 10.0  # nodes take minutes
ABSENT_S: Final = 60.0  # between two checks whether the API server serves the API

UNSEEN: Final = (
    "a member asks for no accelerator: without its gate it would be bound alone, so the gang "
    "is not released unpinned"
)


@dataclass(slots=True)
class _Lack:
    """A gang that lacks nodes. Times in epoch seconds of the engine's clock."""

    since: float
    #: after a failed request: when the next one may be made
    not_before: float = 0.0
    #: whether the gates of its members were removed
    opened: bool = False
    #: the progress that was reported last
    reported: ProvisioningProgress | None = None


@dataclass(slots=True)
class Provisioner:
    """Asks an autoscaler for nodes."""

    engine: Engine
    pods: PendingPods
    client: KubeClient
    config: Autoscaler
    metrics: ExtenderMetrics
    reporter: DecisionReporter
    #: the last decision about each gang that waits for room
    decisions: Mapping[GangKey, Decision]
    #: the resource names that count as devices
    accelerators: Accelerators
    pace: Pace
    _lacks: dict[GangKey, _Lack] = field(default_factory=dict)
    _judged: dict[GangKey, tuple[Decision, bool]] = field(default_factory=dict)
    _absent_until: float = 0.0

    @property
    def wanted(self) -> bool:
        """Whether the operator chose a way to ask for nodes."""
        return bool(self.config.provisioning_class) or self.config.release_unpinned

    async def run(self) -> None:
        """Look every ``PERIOD_S`` seconds, forever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    async def look(self) -> None:
        """Compare the gangs that lack nodes with the requests that exist, once."""
        await self._note_lacks()
        try:
            served = bool(self.config.provisioning_class) and await self._by_request()
        except KubeError as error:  # the list failed: whether the API is served is not known
            log.warning("autoscaler not asked", extra={"error": str(error)})
            return
        if self.config.release_unpinned and not served:
            for key, lack in self._due():
                await self._try(key, self._open(key, lack))

    async def _note_lacks(self) -> None:
        """Find the gangs that lack nodes; a decision that has not changed is not judged again."""
        now, before = self.engine.clock(), self._judged
        self._judged = {}
        for key, decision in list(self.decisions.items()):
            known = before.get(key)
            if known is not None and known[0] is decision:
                lacks = known[1]
            else:
                snapshot = self.engine.state.snapshot()
                lacks = lacks_nodes(snapshot, decision, self.config.ask)
                await self.pace.breathe()
            self._judged[key] = decision, lacks
        lacking = {key for key, (_, lacks) in self._judged.items() if lacks}
        for key in self._lacks.keys() - lacking:
            del self._lacks[key]
        for key in lacking:
            self._lacks.setdefault(key, _Lack(now))

    def _due(self) -> list[tuple[GangKey, _Lack]]:
        now, after_s = self.engine.clock(), self.config.after_seconds
        return [
            (key, lack)
            for key, lack in self._lacks.items()
            if now >= max(lack.since + after_s, lack.not_before)
        ]

    # --- by request -----------------------------------------------------------------------

    async def _by_request(self) -> bool:
        """Update the requests; return False while the API is not served."""
        if self.engine.clock() < self._absent_until:
            return False
        try:
            found = await self.client.list(
                provisioning.REQUESTS,
                labelSelector=f"{provisioning.MANAGED_BY}={provisioning.MANAGER}",
            )
        except NotFound:
            if not self._absent_until:
                log.warning("not served", extra={"resource": str(provisioning.REQUESTS)})
            self._absent_until = self.engine.clock() + ABSENT_S
            return False
        asked = {_gang_of(request) for request in found}
        for request in found:
            await self._try(_gang_of(request), self._review(request))
        for key, _ in self._due():
            if key not in asked:
                await self._try(key, self._ask(key))
        return True

    async def _try(self, key: GangKey, work: Coroutine[None, None, None]) -> None:
        """Do one gang's part; if the API server rejects it, the next look tries again."""
        try:
            await work
        except KubeError as error:
            log.warning("autoscaler not asked", extra={"gang": key, "error": str(error)})

    async def _review(self, request: ProvisioningRequest) -> None:
        """Delete a request that is no longer needed, or has failed; report its progress."""
        key = _gang_of(request)
        lack = self._lacks.get(key)
        if lack is None:
            if not self._is_undecided(key):
                await self._delete(request)
            return
        wanted = await self._wanted(key)
        now = provisioning.standing(request)
        if wanted is not None and wanted.name != request.metadata.name:
            await self._delete(request)  # its members have changed: the next look makes a new one
        elif now.progress in (ProvisioningProgress.FAILED, ProvisioningProgress.EXPIRED):
            lack.not_before = self.engine.clock() + self.config.retry_seconds
            self._report(key, lack, now)
            await self._delete(request)
        else:
            self._report(key, lack, now)

    def _is_undecided(self, key: GangKey) -> bool:
        """Return whether a gang waits and was not planned yet, as after a restart."""
        view = self.engine.state.gang(key)
        return view is not None and len(view.waiting) > 0 and key not in self.decisions

    async def _ask(self, key: GangKey) -> None:
        wanted = await self._wanted(key)
        if wanted is None:
            return
        for body in wanted.templates():
            try:
                await self.client.create(
                    provisioning.POD_TEMPLATES, body, namespace=wanted.namespace
                )
            except AlreadyExists:
                continue  # from an attempt that was interrupted; its name contains a digest
        await self.client.create(
            provisioning.REQUESTS, wanted.request(), namespace=wanted.namespace
        )
        self._report(
            key, self._lacks[key], ProvisioningStanding(ProvisioningProgress.MADE, wanted.name)
        )

    async def _wanted(self, key: GangKey) -> WantedNodes | None:
        """Return the nodes to ask for; None if the gang needs none, or has too many pod sets."""
        state, view = self.engine.state, self.engine.state.gang(key)
        sets = demand(state.snapshot(), key)
        pods = [self.pods.get(state.pod_uid(each.like)) for each in sets]
        if view is None or view.spec is None or not sets:
            return None
        if len(sets) > provisioning.MAX_POD_SETS:
            log.warning("gang has too many kinds of pods", extra={"gang": key, "kinds": len(sets)})
            return None
        whole = []
        for pod, each in zip(pods, sets, strict=True):
            if pod is None:
                return None  # it was bound or deleted just now
            found = await self.client.get(
                provisioning.WHOLE_PODS, pod.ref.name, namespace=pod.ref.namespace
            )
            whole.append((found, each.count))
        return WantedNodes(
            gang=key,
            namespace=view.spec.namespace,
            gang_name=view.spec.name,
            provisioning_class=self.config.provisioning_class or "",
            parameters=self.config.parameters,
            sets=whole,
        )

    async def _delete(self, request: ProvisioningRequest) -> None:
        meta = request.metadata
        await self._delete_one(provisioning.REQUESTS, meta.name, meta.namespace)
        for each in request.spec.pod_sets:
            name = each.pod_template_ref.name
            await self._delete_one(provisioning.POD_TEMPLATES, name, meta.namespace)

    async def _delete_one(self, resource: Resource[T], name: str, namespace: str) -> None:
        try:
            await self.client.delete(resource, name, namespace=namespace)
        except NotFound:
            return

    def _report(self, key: GangKey, lack: _Lack, now: ProvisioningStanding) -> None:
        if lack.reported is now.progress:
            return
        lack.reported = now.progress
        self.metrics.provisioning.labels(now.progress.value.lower()).inc()
        view = self.engine.state.gang(key)
        if view is not None:
            self.reporter.provisioning(view, now.progress.value, now.message)

    # --- unpinned -------------------------------------------------------------------------

    async def _open(self, key: GangKey, lack: _Lack) -> None:
        """Remove the gates of a gang's members, each once."""
        view = self.engine.state.gang(key)
        if view is not None and not self._reaches_filter(view):
            self._report(key, lack, ProvisioningStanding(ProvisioningProgress.FAILED, UNSEEN))
            return
        gated = [] if view is None else self._gated(view)
        for pod in gated:
            await self.client.patch(
                PODS, pod.ref.name, open_body(pod.ref.uid), namespace=pod.ref.namespace
            )
        if view is not None and gated and not lack.opened:
            lack.opened = True
            self.metrics.provisioning.labels("unpinned").inc()
            self.reporter.provisioning(view, "Unpinned", f"{len(gated)} pods")

    def _reaches_filter(self, view: GangView) -> bool:
        """Return whether kube-scheduler calls ``filter`` for every member.

        With the shipped configuration it does so only for pods that request a device
        (managedResources).
        """
        snapshot = self.engine.state.snapshot()
        numbers = np.unique(snapshot.pods.pod_class[view.waiting]).tolist()
        asked = (snapshot.classes[number].requests for number in numbers)
        return all(
            any(name in self.accelerators and amount for name, amount in requests)
            for requests in asked
        )

    def _gated(self, view: GangView) -> list[PendingPod]:
        uids = [self.engine.state.pod_uid(row) for row in view.waiting.tolist()]
        found = [self.pods.get(uid) for uid in uids]
        return [pod for pod in found if pod is not None and pod.gated]


def _gang_of(request: ProvisioningRequest) -> GangKey:
    return GangKey(request.metadata.annotations.get(provisioning.GANG_KEY, ""))
