"""What a person reads when a gang waits."""

from support.clusters.scene import RACK, Scene, pod_class

from muster.cluster.specs.podconstraints import NodeTerm, Operator, Requirement, Taint, TaintEffect
from muster.placement.decision import Wait
from muster.placement.reasons.explanation import render, to_dict

NEAREST = [
    "0 of 2 racks have room for 24 members of 1 nvidia.com/gpu each",
    "the nearest, rack a/r2, has room for 13, lacks 11 nvidia.com/gpu",
    "  held by muster/ns/x: 9 (priority 5, 2 pods)",
    "  held by muster/ns/y: 2 (priority 0, 1 pod)",
]


def test_a_waiting_gang_names_the_nearest_rack_what_it_lacks_and_who_holds_it() -> None:
    #  r1 ─ n1 n2 n3      r2 ─ n4 n5 n6, of which 9 GPUs are taken by x and 2 by y
    scene = Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
    """)
    x, y = scene.gang("x", 2, members=0), scene.gang("y", 1, members=0)
    for name in ("n1", "n2", "n3"):
        scene.run(name, gpu=4)
    scene.run("n4", gpu=8, gang=x, priority=5)
    scene.run("n5", gpu=1, gang=x, priority=5)
    scene.run("n5", gpu=2, gang=y)
    lines = render(scene.decide(scene.gang("g", 24, gpu=1, required_level=RACK)))
    assert lines[:5] == [
        "muster/ns/g waits: no domain of the required level has room",
        *NEAREST,
    ]
    assert lines[-1] == "remedy: goes when 11 more nvidia.com/gpu are free in a/r2"


def test_every_rule_that_removed_nodes_is_listed_with_its_number() -> None:
    scene = Scene("a/r1 n1 n2")
    scene.node("n3", taints=(Taint("gpu", "broken", TaintEffect.NO_SCHEDULE),))
    scene.node("n4", ready=False)
    term = NodeTerm((Requirement(RACK, Operator.IN, ("r9",)),))
    decision = scene.decide(scene.gang("g", 1, like=pod_class(8, node_affinity=(term,))))
    assert render(decision) == [
        "muster/ns/g waits: no feasible node",
        "0 of 4 nodes can take one more member now",
        "  1 removed by not ready",
        "  1 removed by untolerated taint (gpu=broken:NoSchedule)",
        "  2 removed by node affinity",
        "remedy: node affinity: allow other nodes, or label more",
    ]


def test_a_gang_too_large_for_every_rack_is_told_so() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3
    """)
    lines = render(scene.decide(scene.gang("g", 3, required_level=RACK)))
    assert lines[-1] == (
        "remedy: even empty, the largest holds 2 of 3 members: require a wider level, make the "
        "gang smaller, or add nodes"
    )


def test_missing_members_are_counted() -> None:
    scene = Scene("a/r1 n1")
    lines = render(scene.decide(scene.gang("g", 3, members=1)))
    assert lines == [
        "muster/ns/g waits: members missing",
        "remedy: 1 of 3 members can be planned; the others must be created first",
    ]


def test_a_plan_and_a_rejection_read_well_too() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3
    """)
    plan = scene.place(scene.gang("g", 2), spares=1)
    assert render(plan) == [
        "muster/ns/g goes: 2 members on 1 block, 1 rack, 2 hosts",
        "proven: no placement of them is on fewer domains",
        "1 of 2 members have a spare node",
    ]
    rejected = scene.decide(scene.gang("h", 1, gpu=9))
    more = "asks for more than any node has"
    way_out = "ask for less, or add nodes that hold it (it is looked at again when nodes come)"
    assert render(rejected) == [
        f"muster/ns/h fits no nodes that the cluster has now, even empty: {more}",
        f"gang muster/ns/h: a member asks for 9 nvidia.com/gpu; the largest node has 8: {way_out}",
    ]


def test_the_same_in_plain_values() -> None:
    scene = Scene("a/r1 n1")
    decision = scene.decide(scene.gang("g", 2, required_level=RACK))
    assert isinstance(decision, Wait)
    found = to_dict(decision)
    assert found["decision"] == "wait"
    assert found["nearest"] == {
        "level": RACK,
        "domain": "a/r1",
        "fits": 1,
        "needed": 2,
        "short_of": {"nvidia.com/gpu": 8},
        "held_by": {},
        "held_by_others": 0,
        "holders": [],
        "asks": {"cpu": 1000, "nvidia.com/gpu": 8, "pods": 1},
        "domains": 1,
        "fitting": 0,
        "largest": 1,
    }


def test_what_a_rack_lacks_is_the_least_that_must_become_free_there() -> None:
    #  rack r1   n1 [2······] n2 [2······] n3 [8]      2 members of 8: two nodes lack 2 each
    scene = Scene("a/r1  n1 n2 n3")
    for name, gpu in (("n1", 2), ("n2", 2), ("n3", 8)):
        scene.run(name, gpu=gpu)
    lines = render(scene.decide(scene.gang("g", 2, required_level=RACK)))
    assert "the nearest, rack a/r1, has room for 0, lacks 4 nvidia.com/gpu" in lines
    assert lines[-1] == (
        "remedy: goes when 4 more nvidia.com/gpu are free in a/r1, 8 together on a node"
    )


def test_what_pods_of_no_gang_hold_is_told_too() -> None:
    scene = Scene("a/r1  n1 n2")
    scene.run("n1", gpu=8)
    lines = render(scene.decide(scene.gang("g", 2, required_level=RACK)))
    assert "  held by pods that are not Muster's: 8" in lines


def test_how_long_a_holder_has_been_running_is_told_to_who_says_what_time_it_is() -> None:
    scene = Scene("a/r1  n1 n2")
    scene.crew("train", ["n1"], started=1_000.0)
    decision = scene.decide(scene.gang("g", 2, required_level=RACK))
    lines = render(decision, now=1_000.0 + 3 * 3600)
    assert "  held by muster/ns/train: 8 (priority 0, 1 pod, for 3h)" in lines
    assert "  held by muster/ns/train: 8 (priority 0, 1 pod)" in render(decision)
