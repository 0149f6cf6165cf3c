"""Random clusters and gangs: what is planned is valid, what fits is found."""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import event as seen
from hypothesis import given
from hypothesis import strategies as st
from support.clusters import recordings
from support.clusters.scene import BLOCK, GPU, HOST, NAMESPACE, RACK, Scene, pod_class

from loadtest.testbed.oracles.placement.filters import Bench
from muster.cluster.events import BudgetUpserted
from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    PodAffinityTerm,
    PodClass,
    Requirement,
    SpreadConstraint,
    Taint,
    TaintEffect,
    Toleration,
)
from muster.decisions.answer import Planned
from muster.decisions.record import outcome
from muster.decisions.replay import ReplayVerdict, rerun
from muster.placement.decision import Plan, Reject
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.reasons.explanation import render, to_dict
from muster.placement.rules.feasibility import feasible

POWER = "example.com/power"  # a label that cuts across racks and blocks
KEYS = (HOST, RACK, BLOCK, POWER)
EVERYONE = LabelSelector((Requirement("app", Operator.IN, ("train",)),))
OTHERS = LabelSelector((Requirement("app", Operator.IN, ("web",)),))


@dataclass(frozen=True)
class Host:
    name: str
    block: str
    rack: str
    gpus: int
    power: str | None
    tainted: bool
    ready: bool


@st.composite
def hosts(draw: st.DrawFn) -> list[Host]:
    made = []
    for block in range(draw(st.integers(1, 2))):
        for rack in range(draw(st.integers(1, 3))):
            for _ in range(draw(st.integers(1, 3))):
                made.append(
                    Host(
                        name=f"n{len(made)}",
                        block=f"b{block}",
                        # The same name under two blocks is two racks; some nodes have none.
                        rack=draw(st.sampled_from([f"r{rack}"] * 9 + ["-"])),
                        gpus=draw(st.sampled_from([8, 8, 4, 2])),
                        power=draw(st.sampled_from(["p0", "p1", "p2", None])),
                        tainted=draw(st.sampled_from([False] * 5 + [True])),
                        ready=draw(st.sampled_from([True] * 9 + [False])),
                    )
                )
    return made


def build(made: list[Host]) -> Scene:
    scene = Scene("")
    for host in made:
        scene.node(
            f"{host.name}:{host.gpus}",
            block=host.block,
            rack=host.rack,
            labels={} if host.power is None else {POWER: host.power},
            taints=(Taint("k", "v", TaintEffect.NO_SCHEDULE),) if host.tainted else (),
            ready=host.ready,
        )
    return scene


def term(draw: st.DrawFn, selectors: st.SearchStrategy[LabelSelector]) -> PodAffinityTerm:
    return PodAffinityTerm(draw(st.sampled_from(KEYS)), draw(selectors), frozenset({NAMESPACE}))


@st.composite
def classes(draw: st.DrawFn) -> PodClass:
    kind = draw(st.sampled_from(["plain", "plain", "anti", "affine", "spread", "both", "odd"]))
    made = pod_class(gpu=draw(st.sampled_from([1, 2, 4, 8, 0])))
    selectors = st.sampled_from([EVERYONE, EVERYONE, OTHERS])
    if kind in ("anti", "both"):
        made = replace(made, pod_anti_affinity=(term(draw, selectors),))
    if kind == "affine":
        count = draw(st.integers(1, 2))
        made = replace(made, pod_affinity=tuple(term(draw, selectors) for _ in range(count)))
    if kind in ("spread", "both"):
        made = replace(
            made,
            spread=tuple(
                SpreadConstraint(
                    key,
                    max_skew=draw(st.integers(1, 2)),
                    selector=draw(selectors),
                    namespace=NAMESPACE,
                    min_domains=draw(st.sampled_from([1, 1, 2])),
                    honor_node_taints=draw(st.booleans()),
                )
                for key in draw(st.sets(st.sampled_from(KEYS), min_size=1, max_size=2))
            ),
        )
    if kind == "odd":
        made = replace(
            made,
            host_ports=(HostPort("", "TCP", 80),),
            tolerations=(Toleration("k", exists=True),),
            node_affinity=(NodeTerm((Requirement(POWER, Operator.NOT_IN, ("p0",)),)),),
        )
    return made


def occupy(draw: st.DrawFn, scene: Scene, made: list[Host]) -> None:
    for host in made:
        for _ in range(draw(st.integers(0, 2))):
            app = draw(st.sampled_from(["web", "train", "none"]))
            carried = pod_class(draw(st.sampled_from([0, 1, 2])))
            if draw(st.integers(0, 5)) == 0:
                carried = replace(
                    carried, pod_anti_affinity=(term(draw, st.sampled_from([EVERYONE])),)
                )
            scene.run(host.name, like=carried, labels={"app": app}, terminating=draw(st.booleans()))


@st.composite
def worlds(draw: st.DrawFn) -> Scene:
    made = draw(hosts())
    scene = build(made)
    occupy(draw, scene, made)
    if draw(st.integers(0, 4)) == 0:
        caps = {GPU: draw(st.integers(0, 16))}
        scene.state.apply(
            BudgetUpserted("pool", caps, (Requirement(POWER, Operator.IN, ("p0", "p1")),)), now=0
        )
    return scene


@given(worlds(), classes())
def test_the_arrays_and_the_plain_filters_agree_about_every_node(
    scene: Scene, kind: PodClass
) -> None:
    key = scene.gang("g", 1, like=kind, labels={"app": "train"})
    snapshot = scene.snapshot
    view = snapshot.gang(key)
    assert view is not None
    bench = Bench(snapshot)
    pod = bench.pod(int(view.waiting[0]))
    found = feasible(snapshot, kind, pod.labels_id)
    expected = {row for row, node in bench.nodes.items() if bench.refusal(pod, node) is None}
    assert set(np.flatnonzero(found.mask).tolist()) == expected
    assert len(expected) + sum(rule.removed for rule in found.rules) == len(bench.nodes)


levels = st.sampled_from([None, None, RACK, BLOCK, HOST])


@given(worlds(), classes(), st.integers(1, 8), st.data())
def test_every_plan_for_equal_members_is_valid(
    scene: Scene, kind: PodClass, size: int, data: st.DataObject
) -> None:
    sliced = data.draw(st.sampled_from([False, False, True]))
    key = scene.gang(
        "g",
        size,
        like=kind,
        labels={"app": "train"},
        min_count=data.draw(st.integers(1, size)),
        required_level=data.draw(levels),
        preferred_level=data.draw(levels),
        slice_size=data.draw(st.integers(1, size)) if sliced else None,
        slice_level=data.draw(st.sampled_from([RACK, BLOCK, HOST])) if sliced else None,
    )
    decision = scene.decide(key, spares=data.draw(st.integers(0, 2)))
    assert render(decision)
    assert to_dict(decision)["gang"] == key


@given(worlds(), st.lists(st.tuples(classes(), st.integers(1, 4)), min_size=2, max_size=3), levels)
def test_every_plan_for_several_kinds_of_members_is_valid(
    scene: Scene, kinds: list[tuple[PodClass, int]], required: str | None
) -> None:
    size = sum(count for _, count in kinds)
    key = scene.gang("g", size, members=0, required_level=required)
    rank = 0
    for kind, count in kinds:
        scene.members(key, range(rank, rank + count), kind, labels={"app": "train"})
        rank += count
    assert render(scene.decide(key, spares=1))


@given(hosts(), st.integers(0, 6), st.integers(1, 8), st.data())
def test_lost_members_go_back_near_the_others(
    made: list[Host], lost: int, size: int, data: st.DataObject
) -> None:
    scene = build(made)
    sliced = data.draw(st.booleans())
    kind = pod_class(data.draw(st.sampled_from([1, 2])))
    key = scene.gang(
        "g",
        size,
        like=kind,
        required_level=data.draw(levels),
        slice_size=data.draw(st.integers(1, size)) if sliced else None,
        slice_level=RACK if sliced else None,
    )
    decision = scene.decide(key)
    if not isinstance(decision, Plan):
        return
    uids = scene.bind(decision)
    ranks = sorted(data.draw(st.sets(st.integers(0, size - 1), max_size=lost)))
    for rank in ranks:
        scene.end(uids[rank])
    if not ranks:
        return
    scene.members(key, ranks, kind)
    assert isinstance(scene.decide(key), Plan)  # their own nodes are free


@given(hosts(), st.integers(1, 12), st.sampled_from([1, 2, 4]), levels, levels)
def test_a_free_node_more_never_loses_a_fit_and_the_same_question_has_the_same_answer(
    made: list[Host], size: int, gpu: int, required: str | None, preferred: str | None
) -> None:
    scene = build(made)
    key = scene.gang("g", size, gpu, required_level=required, preferred_level=preferred)
    first = scene.decide(key)
    again = plan_now(scene.snapshot, Question(key))
    assert to_dict(first) == to_dict(again)
    if not isinstance(first, Plan):
        return
    assert isinstance(again, Plan)
    assert np.array_equal(first.nodes, again.nodes)
    scene.node("extra", block="b0", rack="r9")
    second = scene.decide(key)
    assert isinstance(second, Plan)
    count = dict(first.domains)
    goal = preferred or required or BLOCK
    assert dict(second.domains)[goal] <= count[goal]


@given(hosts(), st.integers(1, 12), st.integers(1, 12), st.sampled_from([1, 2, 4]), levels)
def test_members_above_the_minimum_never_worsen_the_minimum(
    made: list[Host], minimum: int, more: int, gpu: int, required: str | None
) -> None:
    alone, together = build(made), build(made)
    least = alone.decide(alone.gang("g", minimum, gpu, required_level=required))
    size = minimum + more
    both = together.decide(
        together.gang("g", size, gpu, min_count=minimum, required_level=required)
    )
    assert isinstance(least, Plan) == isinstance(both, Plan)
    if isinstance(least, Plan) and isinstance(both, Plan):
        assert len(both.pods) + len(both.left_over) == size
        racks = together.racks_of(both)[:minimum]
        assert len(set(racks)) <= len(set(alone.racks_of(least)))
    assert not isinstance(least, Reject) or isinstance(both, Reject)


@given(
    worlds(),
    st.lists(st.tuples(classes(), st.integers(1, 3)), min_size=1, max_size=3),
    levels,
    st.data(),
)
def test_what_was_recorded_is_decided_again_to_the_byte(
    scene: Scene, kinds: list[tuple[PodClass, int]], required: str | None, data: st.DataObject
) -> None:
    """Of gangs that wait when the file is written, and of decisions made on older states."""
    made = []
    names = st.lists(st.sampled_from(["n0", "n1", "n2", "gone"]), unique=True, max_size=1)
    for number, (kind, size) in enumerate(kinds):
        key = scene.gang(
            f"g{number}",
            size,
            like=kind,
            members=data.draw(st.sampled_from([size, size, size - 1])),
            labels={"app": "train"},
            required_level=required,
        )
        question = recordings.question(key, data.draw(st.sampled_from([0.0, 10.0])))
        question = replace(
            question,
            refused=tuple(data.draw(names)),
            kept=tuple(data.draw(names)),
            deferred_until=data.draw(st.sampled_from([None, None, 5.0])),
        )
        made.append(recordings.asked(scene.snapshot, question))
        answer = made[-1].answer
        if isinstance(answer, Planned) and data.draw(st.booleans()):
            scene.bind(answer.plan)
    recording = recordings.recorded(recordings.taken(scene.state, 10.0, made))
    for each in recording.entries:
        state = recording.state(each.entry.state)
        again = rerun(each, state.snapshot())
        seen(outcome(again.answer))
        assert again.verdict is ReplayVerdict.IDENTICAL, again.difference
        state.validate()
