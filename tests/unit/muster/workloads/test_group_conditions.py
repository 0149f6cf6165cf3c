"""Conditions of PodGroups: what waits says so, what is placed no longer does, others' are kept."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.workloads.dialects import kai, native, volcano
from muster.workloads.groupconditions import (
    Conditions,
    GroupCondition,
    with_condition,
    without_condition,
)
from muster.workloads.status import GangProgress, Waits

WAITS = Waits("NotEnoughRoom", "volcano/default/pg waits: not enough room; lacks 16", 1_000.0)
WHEN = "1970-01-01T00:16:40Z"
THEIRS = GroupCondition(type="Theirs", status="True", transition_id="7")
ENTRIES = st.builds(
    GroupCondition, type=st.sampled_from("abc"), status=st.sampled_from(["True", "False"])
)


def volcano_group(*conditions: GroupCondition, min_member: int = 2) -> volcano.PodGroup:
    spec, status = volcano.PodGroupSpec(min_member=min_member), volcano.PodGroupStatus()
    status = msgspec.structs.replace(status, conditions=conditions)
    return volcano.PodGroup(spec=spec, status=status)


def native_group(*conditions: GroupCondition) -> native.PodGroup:
    policy = native.Policy(gang=native.GangPolicy(min_count=2))
    spec = native.PodGroupSpec(scheduling_policy=policy)
    return native.PodGroup(spec=spec, status=native.PodGroupStatus(conditions=conditions))


def said(fields: object) -> Conditions:
    assert isinstance(fields, dict)
    found = fields.get("conditions", fields.get("schedulingConditions", ()))
    assert isinstance(found, tuple)
    return found


@given(st.lists(ENTRIES, unique_by=lambda entry: entry.type).map(tuple))
def test_only_the_entry_of_its_type_changes(before: Conditions) -> None:
    after = with_condition(before, "a", status="True", reason="R", message="m", at=0.0)
    assert without_condition(after, "a") == without_condition(before, "a")
    assert [entry.message for entry in after if entry.type == "a"] == ["m"]
    again = with_condition(after, "a", status="True", reason="R", message="m", at=9.0)
    assert again is after


def test_new_numbers_do_not_make_the_wait_look_younger() -> None:
    first = with_condition((), "a", status="True", reason="R", message="lacks 16", at=1_000.0)
    later = with_condition(first, "a", status="True", reason="R", message="lacks 8", at=2_000.0)
    assert [(e.message, e.last_transition_time) for e in later] == [("lacks 8", WHEN)]


def test_a_volcano_group_is_unschedulable_until_it_is_placed_and_then_scheduled() -> None:
    waiting = said(volcano.wanted(volcano_group(THEIRS), GangProgress(present=2, waits=WAITS)))
    assert waiting[0] == THEIRS
    assert (waiting[1].type, waiting[1].status, waiting[1].reason) == (
        "Unschedulable", "True", "NotEnoughResources",
    )  # fmt: skip
    placed = said(volcano.wanted(volcano_group(*waiting), GangProgress(present=2, bound=2)))
    assert [entry.type for entry in placed] == ["Theirs", "Scheduled"]


def test_a_volcano_group_without_its_members_says_so_in_volcanos_words() -> None:
    waits = Waits("MembersMissing", "1 of 2 members", 0.0)
    [entry] = said(volcano.wanted(volcano_group(), GangProgress(present=1, waits=waits)))
    assert entry.reason == "NotEnoughTasks"


def test_a_volcano_group_of_which_some_more_could_be_placed_is_scheduled() -> None:
    more = GangProgress(present=3, bound=2, waits=WAITS)
    assert [e.type for e in said(volcano.wanted(volcano_group(), more))] == ["Scheduled"]


def test_a_kai_group_waits_on_its_node_pool_and_says_nothing_once_placed() -> None:
    group = kai.PodGroup()
    [entry] = said(kai.wanted(group, GangProgress(present=2, waits=WAITS)))
    assert (entry.type, entry.node_pool) == ("UnschedulableOnNodePool", "default")
    told = msgspec.structs.replace(group, status=kai.PodGroupStatus(scheduling_conditions=(entry,)))
    assert said(kai.wanted(told, GangProgress(present=2, waits=WAITS))) == (entry,)
    assert said(kai.wanted(told, GangProgress(present=2, bound=2))) == ()


def test_a_native_group_is_told_of_in_the_words_of_its_version() -> None:
    for version, kind in (
        ("v1alpha2", "PodGroupScheduled"),
        ("v1beta1", "PodGroupInitiallyScheduled"),
    ):
        waiting = GangProgress(present=2, waits=WAITS, version=version)
        [entry] = said(native.wanted(native_group(), waiting))
        assert (entry.type, entry.status, entry.reason) == (kind, "False", "Unschedulable")
        placed = GangProgress(present=2, bound=2, version=version)
        [after] = said(native.wanted(native_group(entry), placed))
        assert (after.status, after.reason) == ("True", "Scheduled")


def test_what_kube_scheduler_said_of_a_placed_native_group_stands() -> None:
    done = GroupCondition(type="PodGroupInitiallyScheduled", status="True", reason="Scheduled")
    for progress in (GangProgress(present=2, bound=2), GangProgress(present=2, waits=WAITS)):
        assert native.wanted(native_group(done), progress) == {}
    assert native.wanted(native_group(), GangProgress(present=2, bound=2)) == {}
