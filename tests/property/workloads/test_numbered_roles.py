"""Members that count from 0 in each of their roles have ranks of the whole gang, each its own.

And where parts of roles are slices, no slice has members of two parts.
"""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.specs.gangspec import GangSpec, ranks
from muster.workloads.dialect import NO_RANK, Member
from muster.workloads.dialects import kai, volcanojob
from muster.workloads.gangbook import GangBook

META = {"name": "g", "namespace": "ns"}
HARD = {"mode": "hard", "highestTierAllowed": 1}
SIZES = st.lists(st.integers(1, 5), min_size=2, max_size=4)


def ranked(spec: GangSpec, members: list[tuple[str, int]]) -> list[int]:
    """Return the rank of each (role, index)."""
    book = GangBook()
    book.told(spec)
    numbers = [book.resolve(Member(spec.key, role, index)).rank for role, index in members]
    found: list[int] = ranks(spec, np.array(numbers, dtype=np.int32)).tolist()
    return found


@given(sizes=SIZES)
def test_ranks_of_a_job_are_complete_and_come_task_by_task(sizes: list[int]) -> None:
    tasks = [{"name": f"t{n}", "replicas": size} for n, size in enumerate(sizes)]
    spec = volcanojob.spec(
        msgspec.convert({"metadata": META, "spec": {"tasks": tasks}}, volcanojob.Job)
    )
    assert spec is not None
    members = [(f"t{n}", index) for n, size in enumerate(sizes) for index in range(size)]
    assert ranked(spec, members) == list(range(sum(sizes)))
    book = GangBook()
    book.told(spec)
    assert book.resolve(Member(spec.key, "another", 0)).rank == NO_RANK
    book.gone(spec.key)
    assert book.resolve(Member(spec.key, "t1", 0)).rank == 0


@given(shapes=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4)), min_size=2, max_size=4))
def test_a_slice_has_members_of_one_partition(shapes: list[tuple[int, int]]) -> None:
    """``shapes``: partitions, and the size of each, 0 for a task without any, of each task."""
    tasks = []
    for n, (count, size) in enumerate(shapes):
        task = {"name": f"t{n}", "replicas": count * (size or 1)}
        policy = {"partitionSize": size, "networkTopology": HARD}
        tasks.append(task | ({"partitionPolicy": policy} if size else {}))
    spec = volcanojob.spec(
        msgspec.convert({"metadata": META, "spec": {"tasks": tasks}}, volcanojob.Job)
    )
    assert spec is not None
    assert spec.problems == ()
    replicas = [count * (size or 1) for count, size in shapes]
    members = [(f"t{n}", index) for n, many in enumerate(replicas) for index in range(many)]
    found = ranked(spec, members)
    assert len(set(found)) == len(found)
    assert found == sorted(found)
    if spec.slice_size is None:
        return
    _no_slice_is_of_two(spec, members, found, {f"t{n}": size for n, (_, size) in enumerate(shapes)})


@given(
    sizes=SIZES,
    bound=st.lists(st.booleans(), min_size=4, max_size=4).filter(any),
    extra=st.integers(0, 3),
    indexed=st.booleans(),
)
def test_a_part_is_one_slice_however_many_members_come(
    *, sizes: list[int], bound: list[bool], extra: int, indexed: bool
) -> None:
    level = {"topologyConstraint": {"requiredTopologyLevel": "muster.dev/rack"}}
    parts = [
        {"name": f"t{n}", "minMember": size} | (level if is_bound else {})
        for n, (size, is_bound) in enumerate(zip(sizes, bound, strict=False))
    ]
    found = {"metadata": META, "spec": {"subGroups": parts}}
    spec = kai.spec(msgspec.convert(found, kai.PodGroup))
    assert spec is not None
    assert spec.problems == ()
    if spec.slice_size is None:
        return
    members = [
        (f"t{n}", index if indexed else NO_RANK)
        for n, size in enumerate(sizes)
        for index in range(size + extra)
    ]
    sliced = set(spec.slice_roles) or {f"t{n}" for n in range(len(sizes))}
    assert sliced == {part["name"] for part in parts if "topologyConstraint" in part}
    _no_slice_is_of_two(spec, members, ranked(spec, members), dict.fromkeys(sliced, 1 << 20))


def _no_slice_is_of_two(
    spec: GangSpec, members: list[tuple[str, int]], found: list[int], sizes: dict[str, int]
) -> None:
    """Assert that members share a slice if they share a part; ``sizes``: of parts, by role."""
    sliced = set(spec.slice_roles) or set(sizes)
    slices: dict[int, set[tuple[str, int]]] = {}
    for (role, index), rank in zip(members, found, strict=True):
        if role in sliced:
            others = zip(members, found, strict=True)
            loose = sum(other not in sliced and at < rank for (other, _), at in others)
            number = (rank - loose) // (spec.slice_size or 1)
            slices.setdefault(number, set()).add((role, max(index, 0) // sizes[role]))
    assert all(len(parts) == 1 for parts in slices.values())
