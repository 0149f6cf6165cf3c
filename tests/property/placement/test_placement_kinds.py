"""Random gangs of two kinds of pods on small clusters, beside enumeration of all placements."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.scene import BLOCK, HOST, RACK, Scene, pod_class

from muster.cluster.ids import GangKey
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.reasons.explanation import to_dict

LEVELS = (BLOCK, RACK, HOST)


@dataclass(frozen=True)
class Host:
    name: str
    block: str
    rack: str
    gpus: int
    cpu: int


@dataclass(frozen=True)
class Kind:
    gpus: int
    cpu: int
    count: int


@st.composite
def hosts(draw: st.DrawFn) -> list[Host]:
    return [
        Host(
            name=f"n{number}",
            block=draw(st.sampled_from(["a", "a", "b"])),
            rack=draw(st.sampled_from(["r1", "r2", "r2", "-"])),
            gpus=draw(st.sampled_from([0, 2, 3, 4])),
            cpu=draw(st.sampled_from([2000, 4000])),
        )
        for number in range(draw(st.integers(1, 5)))
    ]


kinds = st.tuples(
    st.builds(Kind, st.sampled_from([1, 2]), st.sampled_from([1000, 2000]), st.integers(1, 3)),
    st.builds(Kind, st.sampled_from([0, 1, 3]), st.sampled_from([500, 1500]), st.integers(1, 3)),
)
levels = st.sampled_from([None, None, RACK, BLOCK])
wishes = st.tuples(levels, levels).filter(lambda both: both != (RACK, BLOCK))  # contradicts itself


def scene_of(made: list[Host], asked: tuple[Kind, Kind], **spec: object) -> tuple[Scene, GangKey]:
    scene = Scene("", levels=LEVELS)
    for host in made:
        scene.node(
            f"{host.name}:{host.gpus}",
            block=host.block,
            rack=host.rack,
            allocatable={"cpu": host.cpu},
        )
    key = scene.gang("g", sum(kind.count for kind in asked), members=0, **spec)
    rank = 0
    for number, kind in enumerate(asked):
        ranks = range(rank, rank + kind.count)
        scene.members(key, ranks, pod_class(kind.gpus, kind.cpu), role=f"kind{number}-")
        rank += kind.count
    return scene, key


def placements(made: list[Host], asked: tuple[Kind, Kind]) -> Iterator[list[int]]:
    """Yield the hosts in use of every way to divide both kinds over the hosts."""
    first, second = asked
    divisions = [_divisions(kind.count, len(made)) for kind in asked]
    for ones, others in itertools.product(*divisions):
        if all(
            a * first.gpus + b * second.gpus <= host.gpus
            and a * first.cpu + b * second.cpu <= host.cpu
            for a, b, host in zip(ones, others, made, strict=True)
        ):
            yield [i for i, pair in enumerate(zip(ones, others, strict=True)) if any(pair)]


def _divisions(count: int, parts: int) -> list[tuple[int, ...]]:
    found = itertools.product(range(count + 1), repeat=parts)
    return [each for each in found if sum(each) == count]


def count_domains(held: list[Host], made: list[Host]) -> tuple[int, ...]:
    """Return domains in use per level; a host without a rack is one, unless none has any."""
    racks = any(host.rack != "-" for host in made)

    def rack(host: Host) -> tuple[str, str]:
        return ("alone", host.name) if racks and host.rack == "-" else (host.block, host.rack)

    named = ({host.block for host in held}, set(map(rack, held)), {host.name for host in held})
    return tuple(map(len, named))


def fewest(
    made: list[Host], asked: tuple[Kind, Kind], required: str | None, preferred: str | None
) -> tuple[int, ...] | None:
    suited = [host for host in made if required != RACK or host.rack != "-"]
    options = []
    for held in placements(suited, asked):
        used = count_domains([suited[i] for i in held], made)
        if required is None or used[LEVELS.index(required)] == 1:
            first = () if preferred is None else (used[LEVELS.index(preferred)],)
            options.append((*first, *used))
    return min(options, default=None)


@given(hosts(), kinds, wishes)
def test_two_kinds_are_placed_whenever_they_fit_and_on_the_fewest_domains(
    made: list[Host], asked: tuple[Kind, Kind], wished: tuple[str | None, str | None]
) -> None:
    required, preferred = wished
    scene, key = scene_of(made, asked, required_level=required, preferred_level=preferred)
    decision = scene.decide(key)
    expected = fewest(made, asked, required, preferred)
    assert isinstance(decision, Plan) == (expected is not None)
    if isinstance(decision, Plan):
        by_name = {host.name: host for host in made}
        used = count_domains([by_name[name] for name in scene.nodes_of(decision)], made)
        first = () if preferred is None else (used[LEVELS.index(preferred)],)
        assert (*first, *used) == expected
        assert decision.proven


@given(hosts(), kinds, levels)
def test_a_free_node_more_never_loses_a_fit_of_two_kinds(
    made: list[Host], asked: tuple[Kind, Kind], required: str | None
) -> None:
    scene, key = scene_of(made, asked, required_level=required)
    first = scene.decide(key)
    again = plan_now(scene.snapshot, Question(key))
    assert to_dict(first) == to_dict(again)
    if not isinstance(first, Plan):
        return
    assert isinstance(again, Plan)
    assert np.array_equal(first.nodes, again.nodes)
    scene.node("extra:4", block="a", rack="r9", allocatable={"cpu": 4000})
    assert isinstance(scene.decide(key), Plan)


@given(hosts(), kinds, st.sampled_from([1, 2, 3]), levels)
def test_every_plan_of_two_kinds_in_slices_is_valid(
    made: list[Host], asked: tuple[Kind, Kind], size: int, required: str | None
) -> None:
    slices = {"slice_size": size, "slice_level": RACK}
    if size > 1:
        slices |= {"slice_size": 1, "wider_slices": ((BLOCK, size),)}
    scene, key = scene_of(made, asked, required_level=required, **slices)
    scene.decide(key)  # verifies a plan
