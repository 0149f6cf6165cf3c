"""For whom the kubelet asks, and what becomes of those whose devices it gives to others.

The node of ``support.handshakes``: gpu0 … gpu5 whole, gpu6 shared, gpu7 cut, four NICs.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.devices.handshakes import (
    GPU,
    HCA,
    NICS,
    SHARED,
    WHOLE,
    ask,
    container,
    listed,
    picker,
    pod,
    stocks,
    table,
)

from deviceplugin.allocation.table import Table
from deviceplugin.allocation.values import Deviation, DeviationKind, ListedDevices, PodStage
from deviceplugin.errors import AllocationRefused, RefusalCause


def without(free: Sequence[str], *taken: Sequence[str]) -> list[str]:
    return [each for each in free if all(each not in one for one in taken)]


def why(found: Table) -> dict[str, DeviationKind]:
    return {deviation.pod: deviation.why for deviation in found.deviations()}


# --- the choice is honoured ---------------------------------------------------------------


def test_two_pods_that_are_alike_get_what_each_was_planned_in_the_order_they_came() -> None:
    found = table(pod("late", plan=("gpu4", "gpu5")), pod("later", plan=("gpu0", "gpu3")))
    first = ask(found, 2)
    assert first == ["gpu4", "gpu5"]
    assert ask(found, 2, without(WHOLE, first)) == ["gpu0", "gpu3"]
    assert found.given() == {
        "uid-late": {GPU: ("gpu4", "gpu5")},
        "uid-later": {GPU: ("gpu0", "gpu3")},
    }
    assert found.deviations() == ()


def test_pods_of_one_list_are_admitted_by_creation() -> None:
    young = pod("young", plan=("gpu0", "gpu1"), batch=7, created=20.0)
    old = pod("old", plan=("gpu2", "gpu3"), batch=7, created=10.0)
    assert ask(table(young, old), 2) == ["gpu2", "gpu3"]


def test_a_pod_without_a_plan_gets_nothing_that_is_kept_for_others() -> None:
    found = table(pod("bare"), pod("planned", plan=("gpu0", "gpu1")))
    assert ask(found, 2) == ["gpu2", "gpu3"]
    assert ask(found, 2, without(WHOLE, ["gpu2", "gpu3"])) == ["gpu0", "gpu1"]


def test_when_nothing_else_is_left_what_is_kept_for_others_is_given_and_they_get_the_rest() -> None:
    found = table(pod("bare"), pod("planned", plan=("gpu0", "gpu1")))
    free = ["gpu0", "gpu1", "gpu2"]
    first = ask(found, 2, free)
    assert "gpu2" in first
    assert found.kept_for("uid-planned")[GPU] != ("gpu0", "gpu1")


def test_containers_of_a_pod_share_its_devices_out_init_containers_first() -> None:
    asks = container("warm", init=True, gpu=1), container("a", gpu=1), container("b", gpu=1)
    found = table(pod("p", *asks, plan=("gpu1", "gpu4")))
    (warm,) = ask(found, 1)
    found.allocate(GPU, [warm])  # the kubelet gives the next container what that one had
    (other,) = ask(found, 1, without(WHOLE, [warm]))
    assert {warm, other} == {"gpu1", "gpu4"}
    assert found.given()["uid-p"][GPU] == ("gpu1", "gpu4")


def test_an_init_container_has_had_its_turn_when_the_kubelet_names_one_after_it() -> None:
    asks = container("warm", init=True, gpu=1), container("main", gpu=2)
    found = table()
    found.listed([listed("seen-late", "gpu0", "gpu1")], since=0)
    found.pod(pod("seen-late", *asks, plan=("gpu0", "gpu1")))
    found.pod(pod("next", container("main", gpu=1), plan=("gpu4",), batch=2))
    found.listed([listed("seen-late", "gpu0", "gpu1")], found.serial)
    assert ask(found, 1, without(WHOLE, ["gpu0", "gpu1"])) == ["gpu4"]
    assert found.given()["uid-next"] == {GPU: ("gpu4",)}


def test_the_rest_beside_an_init_containers_devices_is_from_the_plan() -> None:
    asks = container("warm", init=True, gpu=1), container("main", gpu=3)
    found = table(pod("p", *asks, plan=("gpu1", "gpu3", "gpu5")))
    first = ask(found, 1)
    answer = found.preferred(GPU, WHOLE, first, 3)
    assert sorted(answer) == ["gpu1", "gpu3", "gpu5"]


@pytest.mark.parametrize("first", [GPU, HCA])
def test_gpus_and_nics_are_one_pods_in_whatever_order_they_are_asked(first: str) -> None:
    asks = container("main", gpu=2, hca=1)
    found = table(
        pod("a", asks, plan=("gpu2", "gpu3", "nic1")), pod("b", asks, plan=("gpu4", "gpu5", "nic2"))
    )
    frees = {GPU: list(WHOLE), HCA: list(NICS)}
    sizes = {GPU: 2, HCA: 1}
    order = [first, HCA if first == GPU else GPU]
    got: list[list[str]] = []
    for _ in range(2):
        one: list[str] = []
        for resource in order:
            answer = ask(found, sizes[resource], frees[resource], resource)
            frees[resource] = without(frees[resource], answer)
            one += answer
        got.append(sorted(one))
    assert got == [["gpu2", "gpu3", "nic1"], ["gpu4", "gpu5", "nic2"]]


@pytest.mark.parametrize("first", [GPU, HCA])
def test_without_a_plan_nics_are_those_below_the_switches_of_the_gpus(first: str) -> None:
    found = table(pod("p", container("main", gpu=2, hca=1)))
    free = {GPU: ["gpu0", "gpu2", "gpu4", "gpu5"], HCA: list(NICS)}
    found.stock(stocks(frozenset({"gpu1", "gpu3"})), picker())
    got: dict[str, list[str]] = {}
    for resource in (first, HCA if first == GPU else GPU):
        got[resource] = ask(found, 2 if resource == GPU else 1, free[resource], resource)
    assert got == {GPU: ["gpu4", "gpu5"], HCA: ["nic2"]}


def test_nics_that_nobody_planned_are_beside_the_gpus_that_were() -> None:
    found = table(pod("p", container("main", gpu=2, hca=2), plan=("gpu3", "gpu4")))
    assert ask(found, 2, NICS, HCA) == ["nic1", "nic2"]
    assert found.deviations() == ()


def test_replicas_are_recognised_by_the_gpu_that_they_are_of() -> None:
    found = table(pod("p", container("main", shared=2), plan=("gpu6", "gpu6")))
    free = [f"gpu6::{n}" for n in range(4)]
    assert len(ask(found, 2, free, SHARED)) == 2
    assert found.given()["uid-p"] == {SHARED: ("gpu6", "gpu6")}
    assert found.deviations() == ()


# --- and where it is not ------------------------------------------------------------------


def test_other_devices_than_planned_are_reported_and_the_displaced_pod_gets_others() -> None:
    """A topology hint left the kubelet no choice but what was kept for ``b``."""
    found = table(pod("a", plan=("gpu0", "gpu1")), pod("b", plan=("gpu2", "gpu3")))
    found.preferred(GPU, ["gpu3", "gpu4", "gpu5"], (), 2)
    found.allocate(GPU, ["gpu3", "gpu4"])
    assert why(found) == {"a": DeviationKind.OTHER_DEVICES}
    kept = found.kept_for("uid-b")[GPU]
    assert "gpu2" in kept
    assert not set(kept) & {"gpu3", "gpu4"}
    ask(found, 2, without(WHOLE, ["gpu3", "gpu4"]))
    assert set(why(found)) == {"a", "b"}


def test_a_device_that_is_ill_is_replaced_in_the_plan_until_it_is_well_again() -> None:
    found = table(pod("p", plan=("gpu0", "gpu1")), ill=["gpu1"])
    assert found.kept_for("uid-p")[GPU][0] == "gpu0"
    assert "gpu1" not in found.kept_for("uid-p")[GPU]
    found.stock(stocks(), picker())
    assert found.kept_for("uid-p")[GPU] == ("gpu0", "gpu1")


def test_two_plans_for_one_device_leave_it_to_the_first_and_tell_of_the_second() -> None:
    found = table(pod("a", plan=("gpu0", "gpu1")), pod("b", plan=("gpu1", "gpu2")))
    assert ask(found, 2) == ["gpu0", "gpu1"]
    second = ask(found, 2, without(WHOLE, ["gpu0", "gpu1"]))
    assert "gpu2" in second
    assert why(found) == {"b": DeviationKind.OTHER_DEVICES}


@pytest.mark.parametrize(
    ("plan", "problem", "expected"),
    [
        (("GPU-x", "GPU-y"), "", DeviationKind.NOT_OURS),
        (("gpu0",), "", DeviationKind.WRONG_NUMBER),
        (None, "cannot be read", DeviationKind.UNREADABLE),
    ],
)
def test_a_plan_that_cannot_be_meant_is_reported_and_the_pod_gets_devices_all_the_same(
    plan: tuple[str, ...] | None, problem: str, expected: DeviationKind
) -> None:
    found = table(pod("p", plan=plan, problem=problem))
    assert len(ask(found, 2)) == 2
    assert why(found) == {"p": expected}


def test_a_plan_that_comes_late_and_differs_is_reported() -> None:
    bare = pod("p")
    found = table(bare)
    got = ask(found, 2)
    found.pod(replace(bare, plan=tuple(without(WHOLE, got)[:2])))
    assert why(found) == {"p": DeviationKind.OTHER_DEVICES}
    found.pod(replace(bare, plan=tuple(got)))
    assert found.deviations() == ()


def test_pods_mistaken_for_one_another_are_put_right_by_what_the_kubelet_says() -> None:
    """Both were created in one second; the kubelet admitted ``b`` first."""
    a = pod("a", plan=("gpu0", "gpu1"), batch=3)
    b = pod("b", plan=("gpu4", "gpu5"), batch=3)
    found = table(a, b)
    assert ask(found, 2) == ["gpu0", "gpu1"]  # given to b, for all we know to a
    found.listed([listed("b", "gpu0"), listed("b", "gpu1")], found.serial)
    assert found.given() == {"uid-b": {GPU: ("gpu0", "gpu1")}}
    assert why(found) == {"b": DeviationKind.OTHER_DEVICES}
    assert len(found.kept_for("uid-a")[GPU]) == 2
    found.validate()


def test_a_kubelet_that_is_asked_whom_it_knows_leaves_no_doubt() -> None:
    a = pod("a", plan=("gpu0", "gpu1"), batch=3)
    b = pod("b", plan=("gpu4", "gpu5"), batch=3)
    found = table(a, b)
    found.listed([ListedDevices("default", "b")], found.serial)
    assert ask(found, 2) == ["gpu4", "gpu5"]
    assert found.deviations() == ()


def test_whom_only_the_kubelet_knows_is_a_stranger_until_the_watch_has_brought_it() -> None:
    found = table(pod("a", plan=("gpu0", "gpu1")))
    assert found.strangers() == frozenset()
    found.listed([ListedDevices("default", "a"), ListedDevices("default", "b")], found.serial)
    assert found.strangers() == {("default", "b")}
    found.pod(pod("b", plan=("gpu4", "gpu5")))
    assert found.strangers() == frozenset()
    assert ask(found, 2) == ["gpu0", "gpu1"]


def test_a_pod_that_is_not_known_yet_gets_what_is_kept_for_no_other_and_is_recognised_later() -> (
    None
):
    found = table(pod("planned", container("main", gpu=4), plan=("gpu0", "gpu1", "gpu2", "gpu3")))
    got = ask(found, 1)
    assert got[0] in ("gpu4", "gpu5")
    assert found.given() == {}
    stranger = pod("stranger", container("main", gpu=1), plan=tuple(got))
    found.pod(stranger)
    found.listed([listed("stranger", *got)], found.serial)
    assert found.given() == {"uid-stranger": {GPU: tuple(got)}}
    assert found.deviations() == ()


def test_what_was_given_after_the_kubelet_was_asked_stays() -> None:
    found = table(pod("p", plan=("gpu0", "gpu1")))
    since = found.serial
    ask(found, 2)
    found.listed([], since)
    assert found.given() == {"uid-p": {GPU: ("gpu0", "gpu1")}}
    found.listed([], found.serial)
    assert found.given() == {}


def test_after_a_restart_the_kubelet_lists_who_has_what() -> None:
    asks = container("warm", init=True, gpu=3), container("main", gpu=2)
    before = table(pod("p", *asks, life=PodStage.RUNNING))
    before.recall("uid-p", {GPU: ("gpu0", "gpu1", "gpu2")})
    before.listed([listed("p", "gpu0"), listed("p", "gpu1")], before.serial)
    assert before.given() == {"uid-p": {GPU: ("gpu0", "gpu1", "gpu2")}}
    before.validate()


def test_a_kubelet_that_has_just_started_and_lists_no_pod_yet_takes_nothing_from_any() -> None:
    asks = container("warm", init=True, gpu=3), container("main", gpu=2)
    found = table(pod("p", *asks, life=PodStage.RUNNING), pod("ended", container("main", gpu=1)))
    everything = {"uid-p": {GPU: ("gpu0", "gpu1", "gpu2")}, "uid-ended": {GPU: ("gpu3",)}}
    rows = [listed("p", "gpu0", "gpu1"), listed("ended", "gpu3")]
    for uid, devices in everything.items():
        found.recall(uid, devices)
    found.listed(rows, found.serial, "one")
    found.starting(GPU, ["gpu3"])
    for seen in ([], [ListedDevices("default", "other")], rows[1:]):
        found.listed(seen, found.serial, "two")
        assert found.given() == everything
    found.listed(rows[:1], found.serial, "two")  # it has listed the other one, and does not now
    assert found.given() == {"uid-p": everything["uid-p"]}
    found.validate()


def test_what_a_pod_had_is_refused_until_this_kubelet_or_the_api_server_shows_its_end() -> None:
    running = pod("p", life=PodStage.RUNNING)
    for ends in ("listed and then not", "over", "gone", "being deleted"):
        found = table(running, pod("new"))
        found.recall("uid-p", {GPU: ("gpu0", "gpu1")})
        found.listed([listed("p", "gpu0", "gpu1")], found.serial, "one")
        assert not found.unvouched(GPU, ["gpu0", "gpu1"])
        found.listed([ListedDevices("default", "new")], found.serial, "two")
        assert found.unvouched(GPU, ["gpu0", "gpu1"])
        with pytest.raises(AllocationRefused, match=r"p, .*not listed since it started") as told:
            found.allocate(GPU, ["gpu0", "gpu1"])
        assert told.value.cause is RefusalCause.TAKEN
        if ends == "listed and then not":
            found.listed([listed("p", "gpu0", "gpu1")], found.serial, "two")
            found.listed([ListedDevices("default", "new")], found.serial, "two")
        elif ends == "gone":
            found.gone("uid-p")
        else:
            over = ends == "over"
            found.pod(replace(running, life=PodStage.OVER if over else PodStage.ENDING))
        found.allocate(GPU, ["gpu0", "gpu1"])
        assert found.given() == {"uid-new": {GPU: ("gpu0", "gpu1")}}
        found.validate()


def test_a_pod_of_which_a_new_kubelet_starts_a_container_is_vouched_for() -> None:
    found = table(pod("p", life=PodStage.RUNNING))
    found.recall("uid-p", {GPU: ("gpu0", "gpu1")})
    found.starting(GPU, ["gpu0", "gpu1"])
    found.listed([], found.serial)
    assert found.given() == {}


def test_a_pod_that_is_deleted_while_the_kubelet_is_away_has_nothing_when_it_is_back() -> None:
    found = table(pod("p", life=PodStage.RUNNING))
    found.recall("uid-p", {GPU: ("gpu0", "gpu1")})
    found.listed([listed("p", "gpu0", "gpu1")], found.serial, "one")
    found.gone("uid-p")
    found.listed([], found.serial, "two")
    assert found.given() == {}


def test_a_pod_that_the_kubelet_named_before_it_was_seen_has_what_it_was_said_to_have() -> None:
    found = table()
    found.listed([listed("p", "gpu0"), listed("p", "gpu1")], found.serial)
    found.pod(pod("p", plan=("gpu0", "gpu1")))
    assert found.given() == {"uid-p": {GPU: ("gpu0", "gpu1")}}
    assert found.kept_for("uid-p") == {}
    found.recall("uid-p", {GPU: ("gpu0", "gpu1")})
    found.validate()


# --- what can always be answered ----------------------------------------------------------


def test_a_question_is_always_answered_as_far_as_there_are_devices() -> None:
    found = table()
    assert found.preferred("example.com/none", ["b", "a"], (), 1) == ("b",)
    assert len(found.preferred(GPU, ["gpu0", "gpu0", "gpu1"], (), 5)) == 2
    assert found.preferred(GPU, ["gpu0"], ["strange"], 2) == ("strange", "gpu0")
    assert found.preferred(GPU, WHOLE, ["gpu3"], 1) == ("gpu3",)
    assert found.preferred(GPU, WHOLE, (), 0) == ()


def test_a_deviation_says_what_was_planned_and_what_was_given() -> None:
    found = table(pod("p", plan=("gpu0", "gpu1")))
    found.allocate(GPU, ["gpu4", "gpu2"])
    assert found.deviations() == (
        Deviation(
            "uid-p",
            "default",
            "p",
            GPU,
            ("gpu0", "gpu1"),
            ("gpu2", "gpu4"),
            DeviationKind.OTHER_DEVICES,
        ),
    )
