"""Statuses count every member once, and each that stands on a node as standing there."""

from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.builders import apply, gang_spec, node, pod, state

from muster.cluster.events import GangUpserted
from muster.workloads.dialects import coscheduling, volcano
from muster.workloads.status import progress

PHASES = st.sampled_from(["waiting", "running", "leaving", "succeeded", "failed"])


@given(members=st.lists(PHASES, min_size=1, max_size=6), minimum=st.integers(1, 4))
def test_members_on_nodes_count_as_placed_whether_they_are_being_deleted_or_not(
    members: list[str], minimum: int
) -> None:
    cluster = state(node("n"))
    apply(cluster, GangUpserted(gang_spec("g", minimum)))
    for number, phase in enumerate(members):
        made = pod(f"g-{number}", gang="g")
        if phase != "waiting":
            made = replace(made, node="n", gates=frozenset())
        apply(cluster, made)
        if phase == "leaving":
            apply(cluster, replace(made, terminating=True))
        elif phase in ("succeeded", "failed"):
            apply(cluster, replace(made, finished=True, succeeded=phase == "succeeded"))
    (key,) = cluster.gangs()
    found = progress(cluster.gang(key), now=1.0)
    on_nodes = sum(phase in ("running", "leaving") for phase in members)
    ended = sum(phase in ("succeeded", "failed") for phase in members)
    assert (found.present, found.bound) == (len(members), on_nodes)
    assert found.succeeded + found.failed == ended
    assert found.ended is (ended == len(members))
    group = volcano.PodGroup(spec=volcano.PodGroupSpec(min_member=minimum))
    status = volcano.wanted(group, found)
    whole = on_nodes + found.succeeded >= minimum
    assert (status["phase"] != "Inqueue") is whole
    conditions = status["conditions"]
    assert isinstance(conditions, tuple)
    assert any(each.type == "Scheduled" for each in conditions) is whole
    older = coscheduling.PodGroup(status=coscheduling.PodGroupStatus(phase="Scheduling"))
    assert coscheduling.wanted(older, found)["scheduled"] == on_nodes + found.succeeded


def test_members_that_finished_and_are_gone_are_not_missed() -> None:
    #  a PodGroup of four, made of a Job: three are done and deleted, one runs
    group = volcano.PodGroup(spec=volcano.PodGroupSpec(min_member=4))
    cluster = state(node("n"))
    apply(cluster, GangUpserted(gang_spec("g", 1, size=4, min_is_remaining=True)))
    apply(cluster, replace(pod("g-3", gang="g"), node="n", gates=frozenset()))
    (key,) = cluster.gangs()
    assert volcano.wanted(group, progress(cluster.gang(key), now=1.0))["phase"] == "Running"


def test_a_group_that_is_not_placed_any_more_is_not_called_scheduled() -> None:
    group = volcano.PodGroup(spec=volcano.PodGroupSpec(min_member=2))
    cluster = state(node("n"))
    apply(cluster, GangUpserted(gang_spec("g", 2)))
    for number in range(2):
        apply(cluster, replace(pod(f"g-{number}", gang="g"), node="n", gates=frozenset()))
    (key,) = cluster.gangs()
    before = volcano.wanted(group, progress(cluster.gang(key), now=1.0))
    status = volcano.PodGroupStatus(conditions=before["conditions"])  # type: ignore[arg-type]
    assert before["phase"] == "Running"
    again = volcano.wanted(msgspec.structs.replace(group, status=status), progress(None, now=2.0))
    assert (again["phase"], again["conditions"]) == ("Inqueue", ())
