"""What is refused, from whom, and what is told to the user."""

import json
from dataclasses import replace
from http import HTTPStatus
from typing import Any

import msgspec
import pytest

from muster.workloads.managedpods import ManagedPolicy
from webhook.errors import MalformedReview
from webhook.review.admission import admit_mutating, admit_validating
from webhook.review.gate import NOTHING
from webhook.review.validation import ValidationRules, planned_by
from webhook.review.wire import AdmissionRequest, Verdict, parse

RULES = ValidationRules()
JSON = dict[str, Any]
EXTENDER = "system:serviceaccount:muster-system:muster-extender"
PODS = ("", "pods", "Pod")


def request(
    new: JSON | None,
    old: JSON | None = None,
    *,
    user: str = "ann",
    groups: tuple[str, ...] = (),
    of: tuple[str, str, str] = PODS,
    operation: str = "",
) -> AdmissionRequest:
    group, resource, kind = of
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": resource},
            "operation": operation or ("CREATE" if old is None else "UPDATE"),
            "namespace": "team-a",
            "userInfo": {"username": user, "groups": list(groups)},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            "options": {"kind": "CreateOptions"},
        },
    }
    return parse(json.dumps(body).encode())


def pod(
    labels: JSON | None = None, annotations: JSON | None = None, *gates: str, **meta: Any
) -> JSON:
    return {
        "metadata": {"labels": labels or {}, "annotations": annotations or {}, **meta},
        "spec": {"containers": [], "schedulingGates": [{"name": gate} for gate in gates]},
    }


def verdict(*args: Any, **kwargs: Any) -> Verdict:
    return admit_validating(request(*args, **kwargs), RULES)


GANG = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}
BAD = GANG | {"muster.dev/gang-min": "9"}
PLAN = {"muster.dev/plan": "{}"}
GATE = "muster.dev/plan"


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = verdict(pod(BAD | {"muster.dev/inject": "no"}, PLAN))
    assert (found.allowed, found.code) == (False, HTTPStatus.FORBIDDEN)
    plan, inject, minimum = found.message.split("; ")
    assert plan.startswith("metadata.annotations[muster.dev/plan]: may not be set, changed or")
    assert plan.endswith('by user "ann": only Muster writes its plans')
    assert inject == 'metadata.labels[muster.dev/inject]: "no" is not allowed: "true" or "false"'
    assert minimum.startswith('metadata.labels[muster.dev/gang-min]: "9" is not allowed: ')


def test_a_plain_pod_is_allowed_without_a_word() -> None:
    assert verdict(pod({"app": "web"})) == Verdict()


def test_what_does_no_harm_is_warned_about() -> None:
    labels = {"muster.dev/gang_size": "4", "scheduling.x-k8s.io/pod-group": "pg"}
    found = verdict(pod(labels, {"muster.dev/topology-required": "rack"}))
    assert found.allowed
    assert found.warnings == (
        '"muster.dev/gang_size" is not a key that Muster knows: did you mean muster.dev/gang-size?',
        'muster.dev/topology-required "rack" is not read here: put it on the PodGroup',
    )


@pytest.mark.parametrize(
    ("new", "old"),
    [(pod({}, PLAN), None), (pod({}, PLAN), pod()), (pod(), pod({}, PLAN)),
     (pod({}, PLAN), pod({}, {"muster.dev/plan": "{1}"}))],
)  # fmt: skip
def test_only_muster_sets_changes_or_removes_a_plan(new: JSON, old: JSON | None) -> None:
    assert "only Muster writes its plans" in verdict(new, old).message
    assert "only Muster" in verdict(new, old, user="root", groups=("system:masters",)).message
    assert verdict(new, old, user=EXTENDER).allowed


def test_an_update_that_leaves_the_plan_as_it_is_may_do_the_rest() -> None:
    assert verdict(pod({"a": "b"}, PLAN), pod({}, PLAN)).allowed


def test_the_gate_is_lifted_by_muster_or_by_an_administrator() -> None:
    new, old = pod({}, {}, "other"), pod({}, {}, "other", GATE)
    assert 'muster.dev/plan may not be removed by user "ann"' in verdict(new, old).message
    assert verdict(new, old, user=EXTENDER).allowed
    assert verdict(new, old, user="root", groups=("system:masters",)).allowed
    assert verdict(pod({}, {}, GATE), old).allowed  # somebody else's gate goes


def test_who_is_muster_is_configured() -> None:
    rules = ValidationRules(users=frozenset(), groups=frozenset({"system:serviceaccounts:gpu"}))
    wanted = request(pod({}, PLAN), user="x", groups=("system:serviceaccounts:gpu",))
    assert admit_validating(wanted, rules).allowed
    assert not admit_validating(request(pod({}, PLAN), user=EXTENDER), rules).allowed


def test_an_object_from_before_the_rules_can_still_be_updated() -> None:
    assert verdict(pod(BAD | {"team": "b"}), pod(BAD)).allowed
    assert not verdict(pod(BAD | {"muster.dev/inject": "no"}), pod(BAD)).allowed


@pytest.mark.parametrize("after", [{}, GANG | {"muster.dev/gang": "other"}])
def test_a_pod_stays_in_the_gang_of_its_creation(after: JSON) -> None:
    assert 'was created in gang "g" and stays there' in verdict(pod(after), pod(GANG)).message


def template(labels: JSON) -> JSON:
    return {"metadata": {"labels": labels}, "spec": {}}


KINDS: list[tuple[tuple[str, str, str], str, Any]] = [
    (("apps", "deployments", "Deployment"), "spec.template", lambda t: {"template": t}),
    (("apps", "statefulsets", "StatefulSet"), "spec.template", lambda t: {"template": t}),
    (("apps", "replicasets", "ReplicaSet"), "spec.template", lambda t: {"template": t}),
    (("batch", "jobs", "Job"), "spec.template", lambda t: {"template": t}),
    (
        ("batch", "cronjobs", "CronJob"),
        "spec.jobTemplate.spec.template",
        lambda t: {"jobTemplate": {"spec": {"template": t}}},
    ),
    (
        ("jobset.x-k8s.io", "jobsets", "JobSet"),
        "spec.replicatedJobs[w].template.spec.template",
        lambda t: {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": t}}}]},
    ),
    (
        ("kubeflow.org", "tfjobs", "TFJob"),
        "spec.tfReplicaSpecs[PS].template",
        lambda t: {"tfReplicaSpecs": {"PS": {"template": t}}},
    ),
    (
        ("ray.io", "rayclusters", "RayCluster"),
        "spec.headGroupSpec.template",
        lambda t: {"headGroupSpec": {"template": t}},
    ),
    (
        ("ray.io", "rayjobs", "RayJob"),
        "spec.rayClusterSpec.workerGroupSpecs[w].template",
        lambda t: {"rayClusterSpec": {"workerGroupSpecs": [{"groupName": "w", "template": t}]}},
    ),
    (
        ("ray.io", "rayservices", "RayService"),
        "spec.rayClusterConfig.headGroupSpec.template",
        lambda t: {"rayClusterConfig": {"headGroupSpec": {"template": t}}},
    ),
    (
        ("leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet"),
        "spec.leaderWorkerTemplate.leaderTemplate",
        lambda t: {"leaderWorkerTemplate": {"leaderTemplate": t}},
    ),
]


@pytest.mark.parametrize(("of", "path", "spec"), KINDS)
def test_templates_are_checked_in_every_kind_and_named_by_their_path(
    of: tuple[str, str, str], path: str, spec: Any
) -> None:
    found = verdict({"metadata": {"name": "x"}, "spec": spec(template(BAD))}, of=of)
    assert found.message.startswith(f'{path}.metadata.labels[muster.dev/gang-min]: "9" is not')
    assert verdict({"metadata": {"name": "x"}, "spec": spec(template(GANG))}, of=of).allowed


@pytest.mark.parametrize(
    ("of", "spec", "field"),
    [
        (("sparkoperator.k8s.io", "sparkapplications", ""), {"executor": {"labels": BAD}},
         "spec.executor.labels"),
        (("trainer.kubeflow.org", "trainjobs", ""), {"annotations": BAD}, "spec.annotations"),
    ],
)  # fmt: skip
def test_keys_that_a_controller_copies_are_checked_where_they_were_written(
    of: tuple[str, str, str], spec: JSON, field: str
) -> None:
    found = verdict({"metadata": {"name": "x"}, "spec": spec}, of=of)
    assert found.message.startswith(f'{field}[muster.dev/gang-min]: "9" is not')


def test_the_size_of_an_indexed_job_is_not_the_users_to_say() -> None:
    def job(mode: str) -> JSON:
        keys = template({"muster.dev/gang-min": "50%"})
        return {"spec": {"completionMode": mode, "template": keys}}

    of = ("batch", "jobs", "Job")
    assert verdict(job("Indexed"), of=of).allowed
    assert "this pod is in no gang" in verdict(job("NonIndexed"), of=of).message


def test_a_daemon_set_cannot_be_a_gang() -> None:
    found = verdict({"spec": {"template": template(GANG)}}, of=("apps", "daemonsets", "DaemonSet"))
    assert "the nodes of a DaemonSet's pods are not Muster's choice" in found.message


def test_a_plan_in_a_template_is_refused_before_its_pods_are() -> None:
    plan = {"metadata": {"annotations": PLAN}}
    found = verdict({"spec": {"template": plan}}, of=("apps", "deployments", "Deployment"))
    assert "only Muster writes plans: remove it" in found.message


@pytest.mark.parametrize("admit", [admit_validating, admit_mutating])
def test_a_kind_that_is_not_ours_is_refused_with_the_way_out(admit: Any) -> None:
    context = (RULES,) if admit is admit_validating else (ManagedPolicy(), RULES)
    found = admit(request({}, of=("", "configmaps", "ConfigMap")), *context)
    found = found if isinstance(found, Verdict) else found[0]
    assert not found.allowed
    assert 'resource "configmaps" of group "" is not handled here' in found.message
    assert "correct the rules of the webhook configuration" in found.message


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_requests_without_an_object_are_allowed(operation: str) -> None:
    assert verdict(None, operation=operation).allowed
    assert admit_mutating(request(None, operation=operation), ManagedPolicy(), RULES)[0].allowed


def test_an_object_that_is_not_what_it_says_is_malformed_not_refused() -> None:
    for wrong in ({"metadata": {"labels": {"a": 1}}}, {"spec": []}, None):
        with pytest.raises(MalformedReview, match="object Pod team-a/ cannot be read"):
            verdict(wrong)
        with pytest.raises(MalformedReview):
            admit_mutating(request(wrong), ManagedPolicy(), RULES)


def test_a_mutation_of_an_update_changes_nothing() -> None:
    answer, _ = admit_mutating(request(pod(GANG), pod(GANG)), ManagedPolicy(), RULES)
    assert answer.operations == ()
    assert msgspec.json.encode(answer.operations) == b"[]"


def test_a_new_pod_is_refused_by_mutation_already_and_nothing_is_patched() -> None:
    asked = pod({**GANG, "muster.dev/gang-size": "many"})
    answer, done = admit_mutating(request(asked), ManagedPolicy(), RULES)
    assert not answer.allowed
    assert answer.message == verdict(asked).message
    assert answer.operations == ()
    assert done is NOTHING


@pytest.mark.parametrize("name", ["\x1b[2Jtrain", "a b", "train\u202e", "a/b", "-x", "x" * 400])
def test_a_group_whose_name_no_object_can_have_is_refused(name: str) -> None:
    planning = replace(RULES, plans=planned_by(ManagedPolicy()))
    member = pod(annotations={"scheduling.k8s.io/group-name": name})
    found = admit_validating(request(member), planning)
    assert "no object can have it" in found.message
    assert found.message.isprintable()
    member = pod(annotations={"scheduling.k8s.io/group-name": "train-1.a"})
    assert admit_validating(request(member), planning).allowed


def test_a_plan_on_a_pod_that_names_its_node_is_refused_where_pods_are_made_with_plans() -> None:
    reserving = replace(RULES, reserves=True, plans=planned_by(ManagedPolicy()))
    bound = pod(GANG, PLAN)
    assert admit_validating(request(bound), reserving).allowed
    bound["spec"]["nodeName"] = "n1"
    assert not admit_validating(request(bound), reserving).allowed
