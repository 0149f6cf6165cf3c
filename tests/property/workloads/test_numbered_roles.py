"""Members that count from 0 in each of their roles have ranks of the whole gang, each its own."""

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.specs.gangspec import ranks
from muster.workloads.dialect import NO_RANK, Member
from muster.workloads.dialects import kai, volcanojob
from muster.workloads.gangbook import GangBook

SIZES = st.lists(st.integers(1, 5), min_size=2, max_size=4)


@given(sizes=SIZES, dialect=st.sampled_from(["volcano", "kai"]))
def test_ranks_are_complete_and_come_role_by_role(sizes: list[int], dialect: str) -> None:
    meta = {"name": "g", "namespace": "ns"}
    if dialect == "volcano":
        tasks = [{"name": f"t{n}", "replicas": size} for n, size in enumerate(sizes)]
        job = msgspec.convert({"metadata": meta, "spec": {"tasks": tasks}}, volcanojob.Job)
        spec = volcanojob.spec(job)
    else:
        level = {"requiredTopologyLevel": "muster.dev/rack"}
        parts = [{"name": f"t{n}", "minMember": size} for n, size in enumerate(sizes)]
        parts[-1]["topologyConstraint"] = level  # type: ignore[assignment]
        found = {"metadata": meta, "spec": {"subGroups": parts}}
        spec = kai.spec(msgspec.convert(found, kai.PodGroup))
    assert spec is not None
    book = GangBook()
    book.told(spec)
    members = [
        Member(spec.key, f"t{number}", index)
        for number, size in enumerate(sizes)
        for index in range(size)
    ]
    numbers = np.array([book.resolve(member).rank for member in members], dtype=np.int32)
    assert ranks(spec, numbers).tolist() == list(range(sum(sizes)))
    assert book.resolve(Member(spec.key, "another", 0)).rank == NO_RANK
    assert book.resolve(Member(spec.key, "t0")).rank == NO_RANK
    book.gone(spec.key)
    assert book.resolve(members[-1]) == members[-1]
