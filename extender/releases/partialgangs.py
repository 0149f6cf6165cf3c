"""Gangs that run in part: reported, completed or rolled back as a whole.

The rule is in ``muster.queueing.partialgangs``; this file applies it. The census shows every gang
every few seconds, so events cost nothing more. A rollback evicts every member that holds room,
through the Eviction API: disruption budgets are respected, and a refused eviction is tried again.
The controllers create the members again, gated, and the gang is planned as a whole.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.planning.worklist import WorkList
from extender.releases.eviction import evict, evict_each, pods_of
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod
from muster.kube.writing.podwrites import PodRef
from muster.queueing.partialgangs import (
    PartialTimeouts,
    Remedy,
    is_partial,
    is_whole,
    may_have_run,
    remedy,
)

log = logging.getLogger(__name__)

PERIOD_S: Final = 5.0  # short beside the timeouts, which are minutes
FAILED: Final = "Failed"  # core/v1, PodPhase
DEFER_S: Final = 60.0  # at most: how long the planner leaves a gang that is being evicted


@dataclass(slots=True)
class _Partial:
    """A gang that runs in part."""

    #: epoch seconds of the engine's clock
    since: float
    #: whether it may have been whole before
    ran: bool
    #: whether it has been reported as Partial
    reported: bool = False
    #: whether it is being evicted
    rolling: bool = False


class PartialGangs:
    """All gangs that run in part now."""

    def __init__(
        self,
        engine: Engine,
        client: KubeClient,
        config: ExtenderConfig,
        metrics: ExtenderMetrics,
        reporter: DecisionReporter,
        worklist: WorkList,
    ) -> None:
        """Defer a gang in ``worklist`` while its members are evicted one after the other."""
        self._worklist = worklist
        self._engine = engine
        self._client = client
        self._metrics = metrics
        self._reporter = reporter
        self._patience = PartialTimeouts(
            config.partial_after_seconds, config.roll_back_after_seconds
        )
        self._started_at = engine.clock()
        self._partials: dict[GangKey, _Partial] = {}
        self._seen: set[GangKey] = set()
        self._whole: set[GangKey] = set()  # seen whole since they last had no bound member

    def begin(self) -> None:
        """Note when this process begins to know the cluster: just before it is listed."""
        self._started_at = self._engine.clock()

    @property
    def reported(self) -> int:
        """Number of gangs that were reported as Partial."""
        return sum(partial.reported for partial in self._partials.values())

    def since(self, key: GangKey) -> float | None:
        """Return since when a gang has run in part, None if that was not reported."""
        partial = self._partials.get(key)
        return partial.since if partial is not None and partial.reported else None

    def notice(self, gang: GangView) -> None:
        """Note the state of a gang; called by the census."""
        key = gang.key
        if is_whole(gang):
            self._whole.add(key)
        elif not len(gang.bound):
            self._whole.discard(key)
        if not is_partial(gang):
            self._end(key, whole=key in self._whole)
        elif key not in self._partials:
            before = key not in self._seen and may_have_run(
                gang, started_at=self._started_at, patience=self._patience
            )
            self._partials[key] = _Partial(self._engine.clock(), before or key in self._whole)
        self._seen.add(key)

    async def run(self) -> None:
        """Look every ``PERIOD_S`` seconds, forever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    def forget_gone(self) -> None:
        """Drop deleted gangs; a standby does only this."""
        living = set(self._engine.state.gangs())
        self._seen &= living
        self._whole &= living
        for key in self._partials.keys() - living:
            del self._partials[key]

    async def look(self) -> None:
        """Look at every partial gang once, and drop deleted gangs."""
        self.forget_gone()
        for key, partial in list(self._partials.items()):
            view = self._engine.state.gang(key)
            if view is None or not is_partial(view):
                self._end(key, whole=view is not None and is_whole(view))
            else:
                await self._look_at(view, partial)

    async def _look_at(self, view: GangView, partial: _Partial) -> None:
        partial_s = self._engine.clock() - partial.since
        pods = self._engine.state.snapshot().pods
        due = remedy(view, pods, partial_s=partial_s, ran=partial.ran, patience=self._patience)
        if due is Remedy.PATIENCE:
            return
        if not partial.reported:
            partial.reported = True
            self._reporter.partial(view, partial_s)
        if due is Remedy.ROLL_BACK:
            await self._roll_back(view, partial)

    async def _roll_back(self, view: GangView, partial: _Partial) -> None:
        """Evict all members that hold room. Called again while some still do."""
        self._worklist.defer(view.key, DEFER_S)
        uids = {
            self._engine.state.pod_uid(row)
            for row in np.concatenate([view.released, view.bound]).tolist()
        }
        try:
            namespace = view.spec.namespace if view.spec is not None else ""
            pods = await pods_of(self._client, namespace, uids)
        except KubeError as error:
            log.warning("gang stays", extra={"gang": view.key, "error": str(error)})
            return
        if _is_whole_now(view, pods):
            log.info("gang is whole, the watch is late", extra={"gang": view.key})
            self._worklist.defer(view.key, 0.0)
            return
        refs = [PodRef(pod.namespace, pod.name, pod.uid) for pod in (p.metadata for p in pods)]
        if not partial.rolling:
            partial.rolling = True
            self._reporter.rolled_back(view, len(refs))
            self._metrics.rollbacks.inc()
        await evict_each(lambda ref: self._evict(ref, view.key), refs)
        self._worklist.defer(view.key, 0.0)

    async def _evict(self, ref: PodRef, gang: GangKey) -> bool:
        goes = await evict(self._client, ref, self._metrics)
        if goes:
            engine, why = self._engine, "its gang is rolled back"
            engine.story.evicted(pod_uid(ref.uid), gang, why, engine.clock())
        return goes

    def _end(self, key: GangKey, *, whole: bool) -> None:
        partial = self._partials.pop(key, None)
        if partial is not None and partial.reported and whole:
            log.info("gang whole", extra={"gang": key})


def _is_whole_now(gang: GangView, pods: Sequence[Pod]) -> bool:
    """Return whether enough members are bound by now; a watch may hang unnoticed for minutes."""
    bound = sum(map(_runs, pods))
    return gang.spec is not None and bound + gang.succeeded >= gang.spec.min_count


def _runs(pod: Pod) -> bool:
    here = bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None
    return here and pod.status.phase != FAILED
