"""Default preemption, as much of it as an extender takes part in.

After pkg/scheduler/framework/preemption: find nodes where pods of lower priority make
the difference, spare as many of them as possible, let the extenders drop candidates,
pick one node. Budgets (PodDisruptionBudget) are not looked at.
"""

from collections.abc import Sequence
from typing import Final

from loadtest.testbed.standins.scheduler import filters
from loadtest.testbed.standins.scheduler.cache import Cache
from loadtest.testbed.standins.scheduler.cycle import Diagnosis
from loadtest.testbed.standins.scheduler.extender import Extender, ExtenderError, Victims
from loadtest.testbed.standins.scheduler.objects import NodeInfo, PodInfo

# DefaultPreemptionArgs: at least a tenth of the nodes, and at least 100 of them.
_CANDIDATE_PERCENT: Final = 10
_CANDIDATES_AT_LEAST: Final = 100


async def choose(
    pod: PodInfo, cache: Cache, diagnosis: Diagnosis, extenders: Sequence[Extender]
) -> tuple[str, Victims] | None:
    """Return a node and who has to go from it, ``None`` when that helps nowhere.

    Raises ``ExtenderError`` when an extender that must not be ignored fails.
    """
    if pod.raw["spec"].get("preemptionPolicy") == "Never":
        return None
    candidates = _candidates(pod, cache, diagnosis)
    for extender in extenders:
        if not candidates:
            return None
        if extender.is_preemptor and extender.interested_in(pod):
            candidates = await _ask(extender, pod, candidates, cache)
    if not candidates:
        return None
    name = min(candidates, key=lambda node: _cost(candidates[node]))
    return name, candidates[name]


async def _ask(
    extender: Extender, pod: PodInfo, candidates: dict[str, Victims], cache: Cache
) -> dict[str, Victims]:
    try:
        return await extender.preempt(pod, candidates, cache.nodes)
    except ExtenderError:
        if extender.config.ignorable:
            return candidates
        raise


def _candidates(pod: PodInfo, cache: Cache, diagnosis: Diagnosis) -> dict[str, Victims]:
    wanted = max(_CANDIDATES_AT_LEAST, len(cache.nodes) * _CANDIDATE_PERCENT // 100)
    found: dict[str, Victims] = {}
    for name, failure in diagnosis.failures.items():
        node = cache.nodes.get(name)
        if node is None or not failure.resolvable:
            continue
        victims = _victims(pod, node, cache)
        if victims is not None:
            found[name] = victims
        if len(found) >= wanted:
            break
    return found


def _victims(pod: PodInfo, node: NodeInfo, cache: Cache) -> Victims | None:
    """Return the fewest pods that make room by leaving, least important first."""
    lower = [other for other in node.pods.values() if other.priority < pod.priority]
    gone = {other.uid for other in lower}
    state = filters.prepare(pod, cache)
    if not lower or filters.failure(state, node.without(gone)) is not None:
        return None
    for other in sorted(lower, key=lambda p: (-p.priority, p.start_time)):
        if filters.failure(state, node.without(gone - {other.uid})) is None:
            gone.discard(other.uid)
    return Victims([other for other in lower if other.uid in gone])


def _cost(victims: Victims) -> tuple[int, int, int, int]:
    """Order candidates as pickOneNodeForPreemption does, up to the start times."""
    priorities = [pod.priority for pod in victims.pods]
    return (
        victims.pdb_violations,
        max(priorities, default=0),
        sum(priorities),
        len(priorities),
    )
