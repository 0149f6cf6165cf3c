"""Training takes shared GPUs from pods that serve; those with devices of their own stay.

::

    n1   GPU 0 [half a, half b]   GPU 1 [third c]        c, d, … serve: pods of Deployments
    n2   GPU 0 [whole d]          GPU 1 [            ]

Nodes have two GPUs of 80 GiB, whose parts Muster counts.
"""

from collections.abc import Sequence

import pytest
from support.clusters.devicekinds import DEVICES, SHARED
from support.clusters.roomscene import NOW, RoomScene, keeps_of, names_of
from support.clusters.scene import GPU, pod_class

from muster.cluster.events import PlanNote
from muster.cluster.ids import GangKey
from muster.cluster.specs.deviceasks import DeviceAsk, DeviceAsks, MigAsk, Milli, SharedAsk
from muster.cluster.specs.podconstraints import PodClass
from muster.decisions import roomtext
from muster.decisions.roomplan import WhyNoRoom
from muster.decisions.tenancy import GangTerms
from muster.queueing.preemption.policies import GivingServices, PreemptionPolicies
from muster.queueing.preemption.rules import Keeps

YEAR = 365 * 86_400.0
MIG = "nvidia.com/mig-1g.5gb"


def part(milli: int) -> PodClass:
    """Return a pod that asks for thousandths of one GPU, as KAI's annotation does."""
    asks = DeviceAsks(asks=(Milli("nvidia", 1, milli),))
    return PodClass(requests=(("cpu", 1000), ("pods", 1)), devices=asks)


def asking(resource: str, ask: DeviceAsk) -> PodClass:
    """Return a pod that asks for one piece of a resource."""
    requests = (("cpu", 1000), (resource, 1), ("pods", 1))
    return PodClass(requests=requests, devices=DeviceAsks(asks=(ask,), covers=(resource,)))


class ServingScene(RoomScene):
    """Nodes with two GPUs each."""

    def __init__(self, *names: str, **entitled: int) -> None:
        super().__init__("", **entitled)
        for name in names:
            self.node(name, block="a", rack="r1", allocatable={GPU: 2}, devices=DEVICES["plain"])

    def shares_n1(self) -> GangKey:
        """Put a, b and c on n1 as they are drawn above; return c."""
        self.serves("a", "n1/g0", 500)
        self.serves("b", "n1/g0", 500)
        return self.serves("c", "n1/g1", 300)

    def serves(
        self, name: str, at: str, milli: int = 1000, *, priority: int = 0, queue: str = ""
    ) -> GangKey:
        """Run a pod that serves, on part of a GPU or (1000) on a whole one.

        ``at``: ``n1/g0``, a node and the GPU that its plan names.
        """
        node, _, gpu = at.partition("/")
        plan = PlanNote(f"plan-{name}", node, devices={node: (gpu,)}) if gpu else None
        return self.crew(
            name,
            [node],
            like=pod_class(1) if milli == 1000 else part(milli),  # one GPU
            spec={"queue": queue, "serves": True},
            priority=priority,
            started=NOW - YEAR,
            plan=plan,
        )


def giving(services: GivingServices) -> PreemptionPolicies:
    """Return the policies with one setting for services."""
    return PreemptionPolicies(services=services)


# --- who gives way --------------------------------------------------------------------------


def test_training_takes_the_gpu_that_the_fewest_pods_share() -> None:
    """GPU 0 of n1 has two halves, GPU 1 a third; a member asks for one whole GPU."""
    scene = ServingScene("n1")
    scene.shares_n1()
    made = scene.made(scene.wants("train", 1, 1, priority=5))
    assert names_of(made) == ["c"]
    assert made.cost.lost == 0


def test_a_pod_that_serves_on_a_gpu_of_its_own_stays() -> None:
    """n1 is full of pods that serve on whole GPUs, of a lower priority."""
    scene = ServingScene("n1")
    for name in ("a", "b"):
        scene.serves(name, "n1")
    refused = scene.refused(scene.wants("train", 1, 1, priority=5))
    assert refused.reason is WhyNoRoom.NOBODY
    assert keeps_of(refused) == {Keeps.DEDICATED: 2}
    assert roomtext.lines_of(refused)[1] == (
        "  2 gangs: it serves requests on devices of its own (makingRoom.services)"
    )


def test_it_stays_even_where_its_queue_uses_more_than_it_is_entitled_to() -> None:
    """b is entitled to nothing and serves on both GPUs; a takes back its own from parts alone."""
    scene = ServingScene("n1", "n2", a=4, b=0)
    scene.serves("whole", "n1", queue="b")
    scene.serves("other", "n1", queue="b")
    scene.runs("x", ["n2"], 2, queue="b", since=NOW - 10)
    refused = scene.refused(scene.wants("train", 2, 2, queue="a"))
    assert keeps_of(refused) == {Keeps.DEDICATED: 2}
    assert names_of(scene.made(scene.wants("one", 1, 2, queue="a"))) == ["x"]


def test_the_gpus_of_parts_are_freed_around_those_that_stay() -> None:
    """n1: a whole GPU that serves, a shared one. n2, n3: shared ones. Two members of 2 GPUs."""
    scene = ServingScene("n1", "n2", "n3")
    scene.serves("stays", "n1/g0")
    for name, at in (("p", "n1/g1"), ("q", "n2/g0"), ("r", "n2/g1"), ("s", "n3/g0")):
        scene.serves(name, at, 600)
    assert names_of(scene.made(scene.wants("train", 2, 2, priority=5))) == ["q", "r", "s"]


def test_training_on_whole_gpus_gives_way_as_before() -> None:
    """a serves on a whole GPU, b trains on one: only b is asked."""
    scene = ServingScene("n1")
    scene.serves("a", "n1")
    scene.runs("b", ["n1"], 1, since=NOW - YEAR)
    assert names_of(scene.made(scene.wants("train", 1, 1, priority=5))) == ["b"]


@pytest.mark.parametrize(
    ("kind", "resource", "ask"),
    [("mig", MIG, MigAsk("1g.5gb", 1, MIG)), ("sliced", SHARED, SharedAsk(SHARED, 1))],
)
def test_slices_and_replicas_are_shared(kind: str, resource: str, ask: DeviceAsk) -> None:
    """All instances of a node are taken by pods that serve; training asks for one."""
    scene = RoomScene("")
    room = {GPU: 0, resource: 2}
    scene.node("n1", block="a", rack="r1", allocatable=room, devices=DEVICES[kind])
    for name in ("a", "b"):
        scene.runs(name, ["n1"], 0, like=asking(resource, ask), serves=True, since=NOW - 9)
    key = scene.gang("train", 1, like=asking(resource, ask), priority=5)
    assert len(scene.made(key).victims) == 1


def test_a_gang_that_serves_with_a_whole_gpu_in_one_pod_stays_whole() -> None:
    """A LeaderWorkerSet's group: its leader has part of a GPU, its worker a whole one."""
    scene = ServingScene("n1")
    group = scene.gang("group", 2, like=part(300), members=1, serves=True)
    scene.members(group, [1], pod_class(1))
    scene.bind(scene.place(group))
    refused = scene.refused(scene.wants("train", 1, 2, priority=5))
    assert keeps_of(refused) == {Keeps.DEDICATED: 1}


# --- who does not, and the setting ----------------------------------------------------------


@pytest.mark.parametrize("priority", [0, 4])
def test_a_higher_or_equal_priority_keeps_its_part(priority: int) -> None:
    scene = ServingScene("n1")
    for name in ("a", "b"):
        scene.serves(name, "n1", 500, priority=4)
    refused = scene.refused(scene.wants("train", 1, 2, priority=priority))
    assert keeps_of(refused) == {Keeps.NOT_LOWER: 2}


def test_a_pod_under_a_budget_keeps_its_part() -> None:
    """A budget protects c, so the two halves of GPU 0 go."""
    scene = ServingScene("n1")
    c = scene.shares_n1()
    made = scene.made(
        scene.wants("train", 1, 1, priority=5), terms={c: GangTerms(is_protected=True)}
    )
    assert names_of(made) == ["a", "b"]


def test_with_none_no_pod_that_serves_gives_way() -> None:
    scene = ServingScene("n1")
    scene.serves("a", "n1", 500)
    scene.serves("b", "n1")
    key = scene.wants("train", 1, 1, priority=5)
    refused = scene.refused(key, policies=giving(GivingServices.NONE))
    assert keeps_of(refused) == {Keeps.SERVES: 2}


def test_with_none_training_gives_way_all_the_same() -> None:
    scene = ServingScene("n1")
    scene.serves("a", "n1")
    scene.runs("b", ["n1"], 1, since=NOW - 10)
    key = scene.wants("train", 1, 1, priority=5)
    assert names_of(scene.made(key, policies=giving(GivingServices.NONE))) == ["b"]


def test_with_all_they_give_way_like_any_gang() -> None:
    scene = ServingScene("n1")
    scene.serves("a", "n1")
    scene.serves("b", "n1")
    key = scene.wants("train", 1, 1, priority=5)
    assert len(scene.made(key, policies=giving(GivingServices.ALL)).victims) == 1


# --- how the set is found -------------------------------------------------------------------


def filled(scene: ServingScene, nodes: Sequence[str], milli: int, each: int) -> None:
    """Put pods that serve on nodes, ``each`` on every one."""
    for node in nodes:
        for number in range(each):
            scene.serves(f"{node}-{number}", f"{node}/g{number % 2}", milli)


def test_among_many_nodes_those_with_the_fewest_pods_are_emptied() -> None:
    """18 nodes with four halves, two with two parts of 900; two members ask for 2 GPUs each."""
    names = [f"n{number:02}" for number in range(20)]
    scene = ServingScene(*names)
    filled(scene, names[:18], 500, 4)
    filled(scene, names[18:], 900, 2)
    made = scene.made(scene.wants("train", 2, 2, priority=5))
    assert names_of(made) == ["n18-0", "n18-1", "n19-0", "n19-1"]


def test_on_each_node_the_gpu_with_the_fewest_pods_is_emptied() -> None:
    """12 nodes, each with four fifths on GPU 0 and one pod on GPU 1; a member goes to each."""
    names = [f"n{number:02}" for number in range(12)]
    scene = ServingScene(*names)
    for node in names:
        for number in range(4):
            scene.serves(f"{node}-{number}", f"{node}/g0", 200)
        scene.serves(f"{node}-x", f"{node}/g1", 900)
    made = scene.made(scene.wants("train", 12, 1, priority=5))
    assert names_of(made) == [f"{node}-x" for node in names]


def test_a_gpu_of_which_one_pod_stays_is_not_emptied() -> None:
    """Each GPU of n1 has a part of high priority beside a low one; n2 has low ones."""
    scene = ServingScene("n1", "n2")
    for gpu in range(2):
        scene.serves(f"high{gpu}", f"n1/g{gpu}", 600, priority=9)
        scene.serves(f"low{gpu}", f"n1/g{gpu}", 400)
        scene.serves(f"x{gpu}", f"n2/g{gpu}", 600)
        scene.serves(f"y{gpu}", f"n2/g{gpu}", 400)
    made = scene.made(scene.wants("train", 1, 2, priority=5))
    assert names_of(made) == ["x0", "x1", "y0", "y1"]
    key = scene.wants("more", 2, 2, priority=5)
    assert scene.refused(key).reason is WhyNoRoom.NOT_ENOUGH


def test_among_very_many_gangs_a_pod_that_serves_loses_least() -> None:
    """71 replicas are trained on for 10 s, one has served for a year; one is wanted."""
    scene = RoomScene("")
    for number in range(12):
        scene.node(
            f"n{number}",
            block="a",
            rack="r1",
            allocatable={GPU: 0, SHARED: 6},
            devices=DEVICES["sliced"],
        )
    like = asking(SHARED, SharedAsk(SHARED, 1))
    for number in range(71):
        scene.runs(f"t{number}", [f"n{number // 6}"], like=like, since=NOW - 10)
    scene.runs("s", ["n11"], like=like, since=NOW - YEAR, serves=True)
    key = scene.gang("train", 1, like=like, priority=5)
    assert names_of(scene.made(key)) == ["s"]


def test_nothing_is_proven_where_devices_count() -> None:
    """By amounts the gang fits as it is: a part takes no ``nvidia.com/gpu``."""
    scene = ServingScene("n1")
    for name in ("a", "b"):
        scene.serves(name, "n1", 600)
    assert not scene.made(scene.wants("train", 1, 2, priority=5)).proven
