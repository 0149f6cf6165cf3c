"""Random small clusters whose GPUs are shared, whole, served and trained on; one gang waits.

::

    n0  g0 [500 200 ...]  g1 [1000]      each part or whole GPU is a gang of one, some of them serve
    n1  g0 [1000]         g1 [ 300 ]     the gang that waits asks for 1 or 2 whole GPUs a member
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from support.clusters.devicekinds import DEVICES
from support.clusters.roomscene import NOW, RoomScene
from support.clusters.scene import GPU, pod_class

from muster.cluster.events import PlanNote
from muster.cluster.ids import GangKey
from muster.cluster.specs.deviceasks import DeviceAsks, Milli
from muster.cluster.specs.podconstraints import PodClass
from muster.decisions.roomplan import RoomPlan
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.victims.costs import CostOrder, VictimCost
from muster.queueing.preemption.policies import GivingServices, PreemptionPolicies

WHOLE = 1000
PRIORITY = 5
HOSTS = ("n0", "n1")


@dataclass(frozen=True)
class Part:
    """A gang of one with part of a GPU, or a whole one."""

    node: str
    gpu: str
    milli: int
    priority: int
    serves: bool
    seconds: int

    def stays(self, services: GivingServices) -> bool:
        """Return whether a rule keeps it, written down once more."""
        if self.priority >= PRIORITY:
            return True
        if not self.serves or services is GivingServices.ALL:
            return False
        return services is GivingServices.NONE or self.milli == WHOLE

    @property
    def cost(self) -> VictimCost:
        """What it costs that it ends."""
        lost = 0 if self.serves else self.milli * self.seconds // 1000
        return VictimCost(self.priority, lost, 1, 1)


def _on_a_gpu(node: str, gpu: str) -> st.SearchStrategy[list[Part]]:
    sizes = st.sampled_from([[], [WHOLE], [500], [500, 300], [200, 200, 200], [700], [300, 300]])

    def filled(millis: list[int]) -> st.SearchStrategy[list[Part]]:
        return st.tuples(
            *(
                st.builds(
                    Part,
                    st.just(node),
                    st.just(gpu),
                    st.just(milli),
                    st.sampled_from([0, 0, 1, 9]),
                    st.booleans(),
                    st.sampled_from([10, 400, 90_000]),
                )
                for milli in millis
            )
        ).map(list)

    return sizes.flatmap(filled)


CLUSTERS = st.tuples(*(_on_a_gpu(node, gpu) for node in HOSTS for gpu in ("g0", "g1"))).map(
    lambda gpus: list(itertools.chain(*gpus))
)
ASKED = st.tuples(st.integers(1, 2), st.integers(1, 2))


def scene_of(parts: list[Part]) -> tuple[RoomScene, dict[GangKey, Part]]:
    """Return a cluster with these gangs, each on the GPU that its plan names."""
    scene, made = RoomScene(""), dict[GangKey, Part]()
    for node in HOSTS:
        scene.node(node, block="a", rack="r1", allocatable={GPU: 2}, devices=DEVICES["plain"])
    for number, one in enumerate(parts):
        asks = DeviceAsks(asks=(Milli("nvidia", 1, one.milli),))
        shared = PodClass(requests=(("cpu", 1000), ("pods", 1)), devices=asks)
        key = scene.crew(
            f"p{number}",
            [one.node],
            like=pod_class(1) if one.milli == WHOLE else shared,
            spec={"serves": one.serves},
            priority=one.priority,
            started=NOW - one.seconds,
            plan=PlanNote(f"plan-{number}", one.node, devices={one.node: (one.gpu,)}),
        )
        made[key] = one
    return scene, made


def sets(parts: dict[GangKey, Part], services: GivingServices) -> Iterator[list[GangKey]]:
    """Yield every set of gangs that may give way."""
    able = [key for key, one in parts.items() if not one.stays(services)]
    for size in range(len(able) + 1):
        yield from map(list, itertools.combinations(able, size))


def cost_of(parts: dict[GangKey, Part], keys: list[GangKey]) -> tuple[int, ...]:
    total = VictimCost()
    for key in keys:
        total = total.plus(parts[key].cost)
    return CostOrder().key(total)


@given(CLUSTERS, ASKED, st.sampled_from(list(GivingServices)))
@settings(max_examples=60)
def test_nobody_who_serves_on_a_gpu_of_its_own_is_a_victim_and_no_set_costs_less(
    parts: list[Part], asked: tuple[int, int], services: GivingServices
) -> None:
    """Against every set there is; up to eight gangs may give way."""
    scene, known = scene_of(parts)
    count, gpus = asked
    key = scene.wants("train", count, gpus, priority=PRIORITY)
    if isinstance(plan_now(scene.snapshot, Question(key, now=NOW)), Plan):
        return
    answer = scene.room(key, policies=PreemptionPolicies(services=services))
    able = [one for one in sets(known, services) if _fits(scene, key, one)]
    if not isinstance(answer, RoomPlan):
        assert able == []
        return
    victims = [victim.gang for victim in answer.victims]
    assert not any(known[gang].stays(services) for gang in victims)
    assert cost_of(known, victims) == min(cost_of(known, one) for one in able)


def _fits(scene: RoomScene, key: GangKey, gone: list[GangKey]) -> bool:
    views = [scene.snapshot.gang(gang) for gang in gone]
    rows = sorted(row for view in views if view is not None for row in view.bound.tolist())
    later = scene.snapshot.overlay(without_pods=rows)
    return isinstance(plan_now(later, Question(key, now=NOW)), Plan)
