"""What is read of Muster's own queues beside their numbers."""

from pathlib import Path

import msgspec
import pytest
from support.machine import quickyaml

from muster.cluster.quota.queuespec import ShareFunction
from muster.workloads.queues.muster import OwnQueue, queue

DEFINITION = Path(__file__).parents[5] / "manifests" / "crds" / "queues.yaml"


@pytest.mark.parametrize("admission", ["Gate", "Suspend"])
def test_where_jobs_wait_changes_nothing_of_a_queue(admission: str) -> None:
    plain, other = (
        queue(msgspec.convert({"metadata": {"name": "a"}, "spec": spec}, OwnQueue))
        for spec in ({}, {"admission": admission})
    )
    assert plain == other


def test_a_word_that_says_nothing_closes_the_queue_and_is_named() -> None:
    found = queue(
        msgspec.convert({"metadata": {"name": "a"}, "spec": {"admission": "suspend"}}, OwnQueue)
    )
    assert [spec.is_open for spec in found.specs] == [False]
    assert found.problems == ('spec.admission: "suspend" is not allowed: Gate or Suspend',)


WORDS = ["Borrowed", "Priority", "WaterFilling", "TwoPhases", "Guaranteed"]


@pytest.mark.parametrize("word", WORDS)
def test_a_queue_says_what_orders_those_below_it(word: str) -> None:
    written = {"metadata": {"name": "a"}, "spec": {"shareFunction": word}}
    found = queue(msgspec.convert(written, OwnQueue))
    assert (found.specs[0].shares, found.problems, found.unobeyed) == (ShareFunction(word), (), ())


def test_a_queue_that_does_not_say_goes_by_what_is_above_it() -> None:
    found = queue(msgspec.convert({"metadata": {"name": "a"}, "spec": {}}, OwnQueue))
    assert found.specs[0].shares is None


def test_an_unknown_share_function_closes_the_queue() -> None:
    written = {"metadata": {"name": "a"}, "spec": {"shareFunction": "Lottery"}}
    found = queue(msgspec.convert(written, OwnQueue))
    assert not found.specs[0].is_open
    allowed = f"one of {', '.join(WORDS)}"
    assert found.problems == (f'spec.shareFunction: "Lottery" is not allowed: {allowed}',)


def test_the_definition_knows_the_same_share_functions() -> None:
    definition = quickyaml.load(DEFINITION.read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    field = schema["properties"]["spec"]["properties"]["shareFunction"]
    assert field["enum"] == [one.value for one in ShareFunction]


def test_a_priority_counts_below_a_queue_and_is_named_directly_below_the_cluster() -> None:
    written = {"metadata": {"name": "a"}, "spec": {"parent": "b", "priority": 3}}
    found = queue(msgspec.convert(written, OwnQueue))
    assert (found.specs[0].priority, found.unobeyed) == (3, ())
    found = queue(msgspec.convert(written | {"spec": {"priority": 3}}, OwnQueue))
    assert found.unobeyed == ("spec.priority: queues directly below the cluster go by Borrowed",)


@pytest.mark.parametrize(("written", "least"), [({}, None), ({"minRunSeconds": 600}, 600)])
def test_a_least_run_time_holds_against_gangs_of_the_queue_and_of_others(
    written: dict[str, int], least: int | None
) -> None:
    found = queue(msgspec.convert({"metadata": {"name": "a"}, "spec": written}, OwnQueue))
    policy = found.specs[0].preemption
    assert (policy.preempt_min_run, policy.reclaim_min_run) == (least, least)
    assert (found.problems, found.unobeyed) == ((), ())


def test_a_least_run_time_below_0_closes_the_queue() -> None:
    written = {"metadata": {"name": "a"}, "spec": {"minRunSeconds": -1}}
    found = queue(msgspec.convert(written, OwnQueue))
    assert found.problems[0].startswith('spec.minRunSeconds: "-1" is not allowed: a whole number')
    assert not found.specs[0].is_open
