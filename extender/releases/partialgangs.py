"""Watching over gangs that run in part: reported, completed or rolled back whole.

The rule is in ``muster.queueing.partialgangs``; here it gets its clock and its hands. Gangs are
shown by the census, which walks all of them every few seconds anyway; nothing is added to the path
of an event. Rolling back means evicting every member that holds room, through the Eviction API:
budgets are respected, and what is refused is tried again. Their controllers make them anew, gated,
and the gang is planned whole.
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
from extender.releases.eviction import evict
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.tables.gangview import GangView
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.resources import PODS
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

PERIOD_S: Final = 5.0  # the patience is minutes
EVICTIONS_AT_ONCE: Final = 8
FAILED: Final = "Failed"  # core/v1, PodPhase
PLANNER_STAYS_OFF_S: Final = 60.0  # at most, while a gang is taken down member by member


@dataclass(slots=True)
class _Partial:
    """A gang that runs in part."""

    #: epoch seconds of the engine's clock
    since: float
    #: whether it may have been whole before
    ran: bool
    #: whether it is Partial
    reported: bool = False
    #: whether it is being evicted
    rolling: bool = False


class PartialGangs:
    """Every gang that runs in part now."""

    def __init__(
        self,
        engine: Engine,
        client: KubeClient,
        config: ExtenderConfig,
        metrics: ExtenderMetrics,
        reporter: DecisionReporter,
        worklist: WorkList,
    ) -> None:
        """``worklist``: keeps the planner off a gang that is taken down member by member."""
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
        self._whole: set[GangKey] = set()  # of those seen: since they last began with nothing

    @property
    def reported(self) -> int:
        """Number of gangs that are Partial."""
        return sum(partial.reported for partial in self._partials.values())

    def since(self, key: GangKey) -> float | None:
        """Return since when a gang has been Partial, None while it is not."""
        partial = self._partials.get(key)
        return partial.since if partial is not None and partial.reported else None

    def notice(self, gang: GangView) -> None:
        """Take note of how a gang stands; called by the census."""
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
        """Look for ever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    def forget_gone(self) -> None:
        """Drop what is known of gangs that are gone; a standby does no more than that."""
        living = set(self._engine.state.gangs())
        self._seen &= living
        self._whole &= living
        for key in self._partials.keys() - living:
            del self._partials[key]

    async def look(self) -> None:
        """Look at every partial gang once, and forget gangs that are gone."""
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
        """Evict all that hold room. Called again while some still do."""
        self._worklist.defer(view.key, PLANNER_STAYS_OFF_S)
        uids = {
            self._engine.state.pod_uid(row)
            for row in np.concatenate([view.released, view.bound]).tolist()
        }
        try:
            pods = await self._read(view, uids)
        except KubeError as error:
            log.warning("gang stays", extra={"gang": view.key, "error": str(error)})
            return
        if _stands(view, pods):
            log.info("gang is whole, the watch is late", extra={"gang": view.key})
            self._worklist.defer(view.key, 0.0)
            return
        refs = [PodRef(pod.namespace, pod.name, pod.uid) for pod in (p.metadata for p in pods)]
        if not partial.rolling:
            partial.rolling = True
            self._reporter.rolled_back(view, len(refs))
            self._metrics.rollbacks.inc()
        for start in range(0, len(refs), EVICTIONS_AT_ONCE):
            some = refs[start : start + EVICTIONS_AT_ONCE]
            await asyncio.gather(*(self._evict(ref, view.key) for ref in some))
        self._worklist.defer(view.key, 0.0)

    async def _evict(self, ref: PodRef, gang: GangKey) -> None:
        if await evict(self._client, ref, self._metrics):
            engine, why = self._engine, "its gang is rolled back"
            engine.story.evicted(pod_uid(ref.uid), gang, why, engine.clock())

    async def _read(self, view: GangView, uids: set[PodUid]) -> list[Pod]:
        """Return these pods as they are now: the model keeps no names of bound ones."""
        namespace = view.spec.namespace if view.spec is not None else ""
        pods = await self._client.list(PODS, namespace=namespace)
        return [pod for pod in pods if pod_uid(pod.metadata.uid) in uids]

    def _end(self, key: GangKey, *, whole: bool) -> None:
        partial = self._partials.pop(key, None)
        if partial is not None and partial.reported and whole:
            log.info("gang whole", extra={"gang": key})


def _stands(gang: GangView, pods: Sequence[Pod]) -> bool:
    """Whether enough members are on nodes by now: a watch may hang for minutes unnoticed."""
    bound = sum(map(_runs, pods))
    return gang.spec is not None and bound + gang.succeeded >= gang.spec.min_count


def _runs(pod: Pod) -> bool:
    here = bool(pod.spec.node_name) and pod.metadata.deletion_timestamp is None
    return here and pod.status.phase != FAILED
