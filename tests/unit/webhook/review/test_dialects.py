"""Pods of every batch scheduler through admission: gated, and taken over from their scheduler."""

import copy
import json
from typing import Any

import jsonpatch
import msgspec
import pytest
from support.dialects.gangcases import CASES

from muster.kube import wire
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.gate import NOTHING, in_namespace, mutate

SCHEDULERS = {
    "volcano": "volcano",
    "volcano job": "volcano",
    "kai": "kai-scheduler",
    "koordinator": "koord-scheduler",
    "koordinator pod group": "koord-scheduler",
    "coscheduling": "scheduler-plugins-scheduler",
    "yunikorn": "yunikorn",
}
JSON = dict[str, Any]


def as_written(dialect: str) -> JSON:
    """Return a member as its user writes it: no gate, no accelerator, its own scheduler."""
    made = copy.deepcopy(CASES[dialect].members()[0])
    made["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    for container in made["spec"]["containers"]:
        container["resources"] = {}
    if dialect in SCHEDULERS:
        made["spec"]["schedulerName"] = SCHEDULERS[dialect]
    return made


def admitted(pod: JSON) -> JSON:
    mutation = mutate(in_namespace(msgspec.convert(pod, wire.Pod), "team-a"), ManagedPolicy())
    operations = json.loads(msgspec.json.encode(mutation.patch(msgspec.convert(pod, wire.Pod))))
    result: JSON = jsonpatch.apply_patch(pod, operations)
    return result


@pytest.mark.parametrize("dialect", CASES)
def test_a_member_of_a_group_is_gated_even_without_an_accelerator(dialect: str) -> None:
    after = admitted(as_written(dialect))
    gates = [gate["name"] for gate in after["spec"]["schedulingGates"]]
    assert gates == ["kueue.x-k8s.io/admission", "muster.dev/plan"]


@pytest.mark.parametrize("dialect", SCHEDULERS)
def test_the_scheduler_of_the_dialect_is_replaced_and_remembered(dialect: str) -> None:
    after = admitted(as_written(dialect))
    assert after["spec"]["schedulerName"] == "default-scheduler"
    annotation = after["metadata"]["annotations"]["muster.dev/original-scheduler-name"]
    assert annotation == SCHEDULERS[dialect]


@pytest.mark.parametrize("dialect", CASES)
def test_two_members_with_two_scheduler_names_come_out_alike(dialect: str) -> None:
    """A launcher that names none and workers that name theirs are one gang all the same."""
    named, unnamed = as_written(dialect), as_written(dialect)
    unnamed["spec"].pop("schedulerName", None)
    schedulers = {admitted(pod)["spec"].get("schedulerName") for pod in (named, unnamed)}
    assert schedulers <= {"default-scheduler", None}


def test_a_member_for_a_scheduler_that_nobody_knows_is_left_alone() -> None:
    stranger = as_written("volcano")
    stranger["spec"]["schedulerName"] = "somebody-elses"
    typed = in_namespace(msgspec.convert(stranger, wire.Pod), "team-a")
    assert mutate(typed, ManagedPolicy()) is NOTHING
