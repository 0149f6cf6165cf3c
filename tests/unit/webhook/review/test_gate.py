"""The patch: what it does, that it applies, and that doing it twice does nothing more.

`jsonpatch`, an independent implementation of RFC 6902, stands for the API server.
"""

import json
from typing import Any

import jsonpatch
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from muster.injection.patching.operations import pointer
from muster.kube import wire
from muster.workloads.managedpods import ManagedConfig, ManagedPolicy
from webhook.review.gate import NOTHING, Mutation, in_namespace, mutate

POLICY = ManagedPolicy()
PLAN = "muster.dev/plan"
JSON = dict[str, Any]


def mutation(pod: JSON, policy: ManagedPolicy = POLICY) -> Mutation:
    return mutate(in_namespace(msgspec.convert(pod, wire.Pod), "team-a"), policy)


def applied(pod: JSON, policy: ManagedPolicy = POLICY) -> JSON:
    patch = mutation(pod, policy).patch(msgspec.convert(pod, wire.Pod))
    operations = json.loads(msgspec.json.encode(patch))
    result: JSON = jsonpatch.apply_patch(pod, operations)
    return result


def gpu_pod(**spec: object) -> JSON:
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {"metadata": {"generateName": "p-"}, "spec": {"containers": [container], **spec}}


def gates(pod: JSON) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


def test_a_pod_gets_the_gate_and_nothing_else() -> None:
    pod = gpu_pod(priority=3)
    after = applied(pod)
    assert after["spec"].pop("schedulingGates") == [{"name": PLAN}]
    assert after == gpu_pod(priority=3)


def test_a_pod_of_a_controller_is_no_longer_tracked_field_by_field() -> None:
    pod = gpu_pod()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    pod["metadata"] |= {"ownerReferences": [owner], "managedFields": [{"manager": "job"}]}
    assert applied(pod)["metadata"]["managedFields"] == []


def test_a_pod_that_somebody_may_apply_again_keeps_its_tracking() -> None:
    pod = gpu_pod()
    pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    assert applied(pod)["metadata"]["managedFields"] == [{"manager": "kubectl"}]


def test_the_gate_comes_last_behind_those_of_others() -> None:
    pod = gpu_pod(schedulingGates=[{"name": "a/x"}, {"name": "b/y"}])
    assert gates(applied(pod)) == ["a/x", "b/y", PLAN]


def test_the_replaced_scheduler_is_recorded_where_there_were_no_annotations() -> None:
    after = applied(gpu_pod(schedulerName="kai-scheduler"))
    assert after["spec"]["schedulerName"] == "default-scheduler"
    note = {"muster.dev/original-scheduler-name": "kai-scheduler"}
    assert after["metadata"]["annotations"] == note


def test_an_annotation_map_that_is_null_or_empty_is_made_anew() -> None:
    for empty in (None, {}):
        pod = gpu_pod(schedulerName="volcano")
        pod["metadata"]["annotations"] = empty or {}
        assert len(applied(pod)["metadata"]["annotations"]) == 1


def test_annotations_of_the_user_stay() -> None:
    pod = gpu_pod(schedulerName="volcano")
    pod["metadata"]["annotations"] = {"a~b/c": "1", "muster.dev/original-scheduler-name": "mine"}
    note = {"a~b/c": "1", "muster.dev/original-scheduler-name": "volcano"}
    assert applied(pod)["metadata"]["annotations"] == note


def test_a_bound_pod_is_not_gated_because_it_would_become_invalid() -> None:
    assert mutation(gpu_pod(nodeName="n1", schedulerName="volcano")) is NOTHING


def test_a_gated_pod_is_not_gated_again() -> None:
    assert mutation(gpu_pod(schedulingGates=[{"name": PLAN}])).operations == ()


def test_a_pod_for_an_unknown_scheduler_is_left_alone() -> None:
    assert mutation(gpu_pod(schedulerName="somebody-elses")) is NOTHING


def test_a_second_scheduler_takes_the_names_it_is_told_to_take() -> None:
    config = ManagedConfig(profile="muster", rewrite=("default-scheduler", "volcano"))
    for name in ("", "default-scheduler", "volcano"):
        after = applied(gpu_pod(schedulerName=name), ManagedPolicy.of(config))
        assert after["spec"]["schedulerName"] == "muster"
        note = after["metadata"]["annotations"]["muster.dev/original-scheduler-name"]
        assert note == (name or "default-scheduler")


def test_a_pointer_escapes_tilde_before_slash() -> None:
    assert pointer("metadata", "annotations", "a~1/b~") == "/metadata/annotations/a~01~1b~0"


names = st.sampled_from(["", "default-scheduler", "volcano", "yunikorn", "other"])
keys = st.sampled_from(["muster.dev/gang", "scheduling.x-k8s.io/pod-group", "team", "a~/b", "a/~1"])
maps = st.dictionaries(keys, st.text(max_size=8), max_size=3)
quantities = st.sampled_from(["0", "1", "8", 1, "1k", "bad"])
resources = st.dictionaries(
    st.sampled_from(["cpu", "nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "rdma/ib"]), quantities
)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps}),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(st.builds(lambda r: {"resources": {"limits": r}}, resources))},
            optional={
                "schedulerName": names,
                "nodeName": st.sampled_from(["", "n"]),
                "schedulingGates": st.lists(
                    st.sampled_from([{"name": "x"}, {"name": PLAN}]), max_size=2
                ),
            },
        ),
    }
)


@given(pods)
def test_the_patch_applies_once_and_then_there_is_nothing_left_to_do(pod: JSON) -> None:
    after = applied(pod)
    assert mutation(after).operations == ()
    assert gates(after).count(PLAN) <= max(1, gates(pod).count(PLAN))
    for key, value in (pod["metadata"].get("annotations") or {}).items():
        assert after["metadata"]["annotations"][key] == value or key.startswith("muster.dev/orig")
