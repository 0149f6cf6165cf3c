"""What goes into the plan annotation beside the node: each member's rank.

::

    block b ── rack r1 ── n0 n1 n2 n3 n4 n5     (8 GPUs, one member fills a host)
"""

from dataclasses import replace

import pytest
from support.clusters.builders import apply, gang_key, gang_spec, grid, pod, state

from muster.cluster.events import GangUpserted, PodUpserted
from muster.cluster.resumable import run
from muster.cluster.specs.gangspec import PODS_PER_JOB, GangSpec
from muster.cluster.state import ClusterState
from muster.decisions.assign import assignments
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question

JOBSET = ((1, 1), (2, 2))  # a driver of one pod, two workers of two


def cluster_of(spec: GangSpec, *pods: PodUpserted) -> ClusterState:
    return state(grid(1, 1, 6), GangUpserted(spec), *pods)


def number(job: int, index: int) -> int:
    return job * PODS_PER_JOB + index


def ranks(cluster: ClusterState) -> dict[bytes, int]:
    """Plan the gang; return the rank of each pod by UID."""
    snapshot = cluster.snapshot()
    plan = plan_now(snapshot, Question(gang_key("g")))
    assert isinstance(plan, Plan)
    return {a.uid: a.rank for a in run(assignments(snapshot, plan))}


def members(*numbers: int) -> dict[int, PodUpserted]:
    return {n: pod(f"g-{n}", gang="g", rank=n) for n in numbers}


def test_ranks_of_several_jobs_are_their_positions_and_have_no_gaps() -> None:
    numbers = [number(0, 0), number(1, 0), number(1, 1), number(2, 0), number(2, 1)]
    made = members(*numbers)
    found = ranks(cluster_of(gang_spec("g", 5, rank_runs=JOBSET), *made.values()))
    assert [found[made[n].uid] for n in numbers] == [0, 1, 2, 3, 4]


def test_a_member_that_comes_before_its_siblings_has_the_rank_it_keeps() -> None:
    """Leaders first, as a JobSet with exclusive topology makes them; then the followers."""
    leaders = members(number(0, 0), number(1, 0), number(2, 0))
    cluster = cluster_of(gang_spec("g", 3, rank_runs=JOBSET), *leaders.values())
    assert [ranks(cluster)[made.uid] for made in leaders.values()] == [0, 1, 3]
    followers = members(number(1, 1), number(2, 1))
    apply(cluster, *(replace(made, node=f"b0-r0-n{i}") for i, made in enumerate(leaders.values())))
    apply(cluster, *followers.values())
    assert [ranks(cluster)[made.uid] for made in followers.values()] == [2, 4]


@pytest.mark.parametrize("runs", [(), ((1, 8),)])
def test_a_completion_index_is_the_rank_whoever_is_missing(
    runs: tuple[tuple[int, int], ...],
) -> None:
    made = members(1, 5, 20_000)
    found = ranks(cluster_of(gang_spec("g", 3, rank_runs=runs), *made.values()))
    assert [found[made[n].uid] for n in (1, 5, 20_000)] == [1, 5, 20_000]


def test_members_without_a_number_of_a_known_job_are_numbered_in_the_order_of_the_plan() -> None:
    made = members(number(7, 0), number(8, 0))
    found = ranks(cluster_of(gang_spec("g", 2, rank_runs=JOBSET), *made.values()))
    assert sorted(found.values()) == [0, 1]


def test_pods_without_ranks_are_numbered_and_late_ones_after_the_others() -> None:
    first, late = pod("g-a", gang="g"), pod("g-b", gang="g")
    cluster = cluster_of(gang_spec("g", 1), first, late)
    assert sorted(ranks(cluster).values()) == [0, 1]
    apply(cluster, replace(first, node="b0-r0-n0"))
    assert ranks(cluster) == {late.uid: 1}
