"""One scheduling cycle: from a popped pod to a node, or to the reason why there is none.

The order of steps is ``schedulePod``'s (pkg/scheduler/schedule_one.go)::

    PreFilter: named nodes only? ─► nominated node alone ─► sample of feasible nodes
         ─► extenders, one after the other ─► one left: done ─► scores ─► best, ties by lot
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadtest.testbed.standins.scheduler import filters
from loadtest.testbed.standins.scheduler.cache import Cache
from loadtest.testbed.standins.scheduler.config import Configuration
from loadtest.testbed.standins.scheduler.extender import Extender, ExtenderError
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo
from loadtest.testbed.standins.scheduler.queue import EXTENDER
from loadtest.testbed.standins.scheduler.requirements import Failure

# framework.MaxNodeScore / extender MaxExtenderPriority: an extender's points are worth ten.
_EXTENDER_SCALE: Final = 10


@dataclass(slots=True)
class Diagnosis:
    """Why nodes are out: what the event says, and what preemption goes by."""

    failures: dict[str, Failure] = field(default_factory=dict)
    by_extender: bool = False
    nodes: int = 0

    @property
    def plugins(self) -> frozenset[str]:
        """Plugins that rejected the pod: an event they asked for wakes it."""
        found = {failure.plugin for failure in self.failures.values()}
        return frozenset(found | ({EXTENDER} if self.by_extender else set()))

    def message(self) -> str:
        """Word it as ``FitError.Error`` does: reasons sorted as text, each with its count."""
        counts = Counter(failure.reason for failure in self.failures.values())
        reasons = sorted(f"{count} {reason}" for reason, count in counts.items())
        text = f"0/{self.nodes} nodes are available"
        return f"{text}: {', '.join(reasons)}." if reasons else f"{text}."


class FitError(Exception):
    """No node takes the pod."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.message())
        self.diagnosis = diagnosis


class Cycle:
    """Chooses nodes; keeps only where the last search of nodes ended."""

    def __init__(
        self, config: Configuration, cache: Cache, extenders: Sequence[Extender], seed: int
    ) -> None:
        self._config, self._cache, self._extenders = config, cache, extenders
        self._random = random.Random(seed)
        self._start = 0

    async def choose(self, pod: PodInfo) -> str:
        """Return the node for the pod; raises ``FitError`` or ``ExtenderError``."""
        if not self._cache.nodes:
            raise FitError(Diagnosis())
        diagnosis = Diagnosis(nodes=len(self._cache.nodes))
        state = filters.prepare(pod, self._cache)
        nodes = self._named(pod, diagnosis)
        feasible = await self._nominated(state, diagnosis)
        if not feasible:
            feasible = self._filter(state, nodes, diagnosis)
            feasible = await self._ask_filters(pod, feasible, diagnosis)
        if not feasible:
            raise FitError(diagnosis)
        if len(feasible) == 1:
            return feasible[0].name
        return self._best(await self._score(pod, feasible))

    def _named(self, pod: PodInfo, diagnosis: Diagnosis) -> list[NodeInfo]:
        """Return the nodes that PreFilter leaves; the others are out for good."""
        nodes = self._cache.nodes
        names = filters.named_nodes(pod)
        if names is None:
            return list(nodes.values())
        left = [nodes[name] for name in sorted(names) if name in nodes]
        if not left or len(left) < len(nodes):
            reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
            diagnosis.failures["*"] = Failure("NodeAffinity", reason)
        return left

    async def _nominated(self, state: filters.PodState, diagnosis: Diagnosis) -> list[NodeInfo]:
        """Try the nominated node by itself; an error there only means: look at all."""
        node = self._cache.nodes.get(state.pod.nominated)
        if node is None:
            return []
        if found := filters.failure(state, node):
            diagnosis.failures[node.name] = found
            return []
        try:
            return await self._ask_filters(state.pod, [node], diagnosis)
        except ExtenderError:
            return []

    def _filter(
        self, state: filters.PodState, nodes: list[NodeInfo], diagnosis: Diagnosis
    ) -> list[NodeInfo]:
        percentage = self._config.percentage(state.pod.scheduler_name)
        enough = filters.nodes_to_find(len(nodes), percentage, choosing=True)
        feasible: list[NodeInfo] = []
        looked_at = 0
        for node in filters.rotated(nodes, self._start):
            looked_at += 1
            failure = filters.failure(state, node)
            if failure is None:
                feasible.append(node)
                if len(feasible) == enough:
                    break
            else:
                diagnosis.failures[node.name] = failure
        if nodes:
            self._start = (self._start + looked_at) % len(nodes)
        return feasible

    async def _ask_filters(
        self, pod: PodInfo, feasible: list[NodeInfo], diagnosis: Diagnosis
    ) -> list[NodeInfo]:
        """Let each extender see what the last one left."""
        before = len(feasible)
        for extender in self._extenders:
            if not feasible:
                break
            if extender.is_filter and extender.interested_in(pod):
                feasible = await self._ask_filter(extender, pod, feasible, diagnosis)
        diagnosis.by_extender |= len(feasible) != before
        return feasible

    async def _ask_filter(
        self, extender: Extender, pod: PodInfo, feasible: list[NodeInfo], diagnosis: Diagnosis
    ) -> list[NodeInfo]:
        try:
            result = await extender.filter(pod, feasible)
        except ExtenderError:
            if extender.config.ignorable:
                return feasible
            raise
        for name, reason in result.failed.items():
            if name not in result.unresolvable:
                diagnosis.failures[name] = Failure(EXTENDER, reason, resolvable=True)
        for name, reason in result.unresolvable.items():
            diagnosis.failures[name] = Failure(EXTENDER, reason)
        return result.nodes

    async def _score(self, pod: PodInfo, feasible: list[NodeInfo]) -> Mapping[str, int]:
        """Add our one score and the extenders', which are asked at the same time."""
        scores = {node.name: _least_allocated(pod, node) for node in feasible}
        asked = [e for e in self._extenders if e.is_prioritizer and e.interested_in(pod)]
        calls = [extender.prioritize(pod, feasible) for extender in asked]
        for answer in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(answer, ExtenderError):
                continue  # upstream logs it and goes on without these scores
            if isinstance(answer, BaseException):
                raise answer
            for name, points in answer.items():
                if name in scores:
                    scores[name] += points * _EXTENDER_SCALE
        return scores

    def _best(self, scores: Mapping[str, int]) -> str:
        most = max(scores.values())
        return self._random.choice([name for name, score in scores.items() if score == most])


def _least_allocated(pod: PodInfo, node: NodeInfo) -> int:
    """Score 0..100: the free share of cpu and memory after the pod, averaged."""
    shares = []
    for name in ("cpu", "memory"):
        have = node.allocatable.get(name, 0)
        free = have - node.used.get(name, 0) - pod.requests.get(name, 0)
        shares.append(100 * max(free, 0) // have if have else 0)
    return sum(shares) // len(shares)
