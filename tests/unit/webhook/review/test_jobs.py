"""Objects that make pods, as they are created: what their author hears, what a queue will count."""

import json

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from support.injections.injecting import GPU, JSON, facts
from support.pods.jobs import KINDS, job, of_kind

from muster.injection.nodegroups import NodeGroup, NodeGroups
from muster.injection.patching.pointers import Json
from muster.injection.podview import PodView
from muster.injection.run import inject
from muster.injection.subject import Facts, Gang
from muster.injection.templates.manifests import templates
from muster.workloads.managedpods import ManagedPolicy
from webhook.metrics import Metrics
from webhook.review.admission import admit_mutating
from webhook.review.injectionmode import Early, Mode
from webhook.review.validation import ValidationRules
from webhook.review.wire import (
    ALLOWED,
    WARNING_CHARS,
    AdmissionRequest,
    GroupVersionKind,
    GroupVersionResource,
    Verdict,
)

NIC = "rdma/roce_v2"
ROCE = facts({"profile": "generic-roce-hostnet"})
RUN_TO_COMPLETION = sorted(KINDS.keys() - {"RayService", "LeaderWorkerSet"})


def review(
    kind: str, body: bytes, api_version: str = "batch/v1", operation: str = "CREATE"
) -> AdmissionRequest:
    group, _, version = api_version.rpartition("/")
    return AdmissionRequest(
        uid="u",
        kind=GroupVersionKind(group, version, kind),
        resource=GroupVersionResource(group, version, f"{kind.lower()}s"),
        operation=operation,  # type: ignore[arg-type]
        namespace="team-a",
        name="llama",
        object=msgspec.Raw(body),
    )


def admitted(document: JSON, known: Facts = ROCE, operation: str = "CREATE") -> Verdict:
    body = json.dumps(document).encode()
    request = review(document["kind"], body, document["apiVersion"], operation)
    return admit_mutating(request, ManagedPolicy(), ValidationRules(), known)[0]


def patched(document: JSON, known: Facts = ROCE) -> JSON:
    patch = json.loads(msgspec.json.encode(admitted(document, known).operations))
    after: JSON = jsonpatch.apply_patch(document, patch)
    return after


def pods(document: JSON) -> list[JSON]:
    return [json.loads(msgspec.json.encode(each.pod)) for each in templates(document)]


def asks(pod: JSON) -> dict[str, str]:
    amounts: dict[str, str] = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return amounts


@pytest.mark.parametrize("kind", RUN_TO_COMPLETION)
def test_the_devices_that_pods_get_stand_in_what_the_queue_counts(kind: str) -> None:
    before = of_kind(kind, queue="research")
    for old, new in zip(pods(before), pods(patched(before)), strict=True):
        if "limits" in old["spec"]["containers"][0]["resources"]:
            assert asks(new) == {NIC: "1"}
            assert "muster.dev/injected" in new["metadata"]["annotations"]
        else:
            assert new == old  # a launcher or head without accelerators


@pytest.mark.parametrize("kind", ["RayService", "LeaderWorkerSet"])
def test_kinds_that_restart_their_pods_for_another_template_are_left_to_the_pods(kind: str) -> None:
    assert admitted(of_kind(kind, queue="research")).operations == ()
    asked = of_kind(kind)
    asked["metadata"]["annotations"] = {"muster.dev/inject-template": "true"}
    assert admitted(asked).operations != ()


@pytest.mark.parametrize("kind", ["RayCluster", "PyTorchJob", "JobSet"])
def test_a_pod_of_a_completed_template_is_not_changed_again(kind: str) -> None:
    for pod in pods(patched(of_kind(kind, queue="research"))):
        view = msgspec.convert(pod, PodView)
        assert inject(view, "team-a", ROCE, Gang("muster")).operations == ()


def test_a_completed_object_is_not_changed_again() -> None:
    once = patched(job(queue="research"))
    assert admitted(once).operations == ()


def test_a_profile_that_changes_while_a_job_runs_does_not_part_its_pods() -> None:
    """A member that is made again has the settings of its siblings, not those of today."""
    changed = facts(
        {"profile": "generic-roce-hostnet", "inject": {"env": {"NCCL_SOCKET_IFNAME": "bond9"}}}
    )
    (pod,) = pods(patched(job(queue="research")))
    after = inject(msgspec.convert(pod, PodView), "team-a", changed, Gang("job"))
    written = msgspec.json.encode(after.operations)
    assert b"bond9" not in written


# -- whose templates -------------------------------------------------------------------------------


def test_an_object_that_no_queue_counts_stays_as_its_author_wrote_it() -> None:
    assert admitted(job()).operations == ()


@pytest.mark.parametrize(
    ("said", "queue", "changed"),
    [("never", "research", False), ("queued", "", False), ("always", "", True)],
)
def test_the_cluster_says_whose(said: str, queue: str, *, changed: bool) -> None:
    known = facts({"profile": "generic-roce-hostnet"}, jobTemplates=said)
    assert (admitted(job(queue), known).operations != ()) is changed


def test_a_namespace_has_its_own_word_and_the_object_the_last() -> None:
    known = facts(
        {"profile": "generic-roce-hostnet"}, namespaces={"team-a": {"jobTemplates": "always"}}
    )
    no = {"annotations": {"muster.dev/inject-template": "false"}}
    assert admitted(job(), known).operations
    assert admitted(job(**no), known).operations == ()


def test_an_object_that_opts_out_of_injection_is_not_changed() -> None:
    assert admitted(job("q", annotations={"muster.dev/inject": "false"})).operations == ()


# -- Kueue -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", RUN_TO_COMPLETION)
def test_nothing_is_changed_once_the_object_is_there(kind: str) -> None:
    """Another request ends an admission; selectors and tolerations are put back on a stop."""
    assert admitted(of_kind(kind, queue="research"), operation="UPDATE").operations == ()


def test_a_copy_for_a_workload_that_is_there_already_is_left_alone() -> None:
    prebuilt = job("q")
    prebuilt["metadata"]["labels"]["kueue.x-k8s.io/prebuilt-workload-name"] = "w"
    assert admitted(prebuilt).operations == ()


def test_what_another_object_controls_is_left_to_that_one() -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "s", "uid": "u"}
    child = job("q", ownerReferences=[{**owner, "controller": True}])
    assert admitted(child).operations == ()


def test_a_job_of_a_cron_job_is_its_own() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "s", "uid": "u"}
    assert admitted(job("q", ownerReferences=[{**owner, "controller": True}])).operations


POOLED = {"profile": "generic-roce-hostnet", "nodeLabels": {"pool": "roce"}}
TCP = {"profile": "plain-tcp", "pods": "accelerated"}
WITH_NIC = NodeGroup({"pool": "roce"}, {GPU: 8, NIC: 1})
WITHOUT = NodeGroup({"pool": "plain"}, {GPU: 8})
NO_GPU = NodeGroup({"pool": "cpu"}, {})


def test_where_two_fabrics_fit_the_queue_chooses_the_nodes_first() -> None:
    """A selector of ours against that of the flavor would be a permanent error in Kueue."""
    known = facts(POOLED, TCP)
    assert admitted(job("q"), known).operations == ()
    named = job("q")
    named["spec"]["template"]["metadata"] = {
        "annotations": {"muster.dev/fabric": "generic-roce-hostnet"}
    }
    assert admitted(named, known).operations


@pytest.mark.parametrize(
    ("groups", "decided"),
    [((WITH_NIC, NO_GPU), True), ((WITH_NIC, WITHOUT), False), ((WITHOUT, NO_GPU), True)],
)
def test_what_every_node_with_accelerators_is_of_is_no_choice(
    groups: tuple[NodeGroup, ...], *, decided: bool
) -> None:
    known = facts(POOLED, TCP, nodes=NodeGroups(groups, known=True))
    assert (admitted(job("q"), known).operations != ()) is decided


def test_a_fabric_for_all_nodes_comes_before_the_sockets_behind_it() -> None:
    known = facts({"profile": "generic-roce-hostnet"}, TCP)
    (amounts,) = (asks(pod) for pod in pods(patched(job("q"), known)))
    assert amounts == {NIC: "1"}


def test_a_template_has_no_nulls_which_custom_resources_refuse() -> None:
    known = facts(
        {"profile": "generic-roce-hostnet"}, namespaces={"team-a": {"priorityClass": "research"}}
    )
    spec = patched(of_kind("JobSet", queue="q"), known)["spec"]["replicatedJobs"][0]["template"]
    pod = spec["spec"]["template"]["spec"]
    assert pod["priorityClassName"] == "research"
    assert "priority" not in pod


# -- what the author hears -------------------------------------------------------------------------


def test_the_author_of_a_job_hears_what_its_pods_would_tell_a_controller() -> None:
    wrong = job()
    container = wrong["spec"]["template"]["spec"]["containers"][0]
    container["command"] = ["torchrun", "--nnodes=8", "--rdzv-endpoint=${MASTER_ADDR}:29500"]
    braces, nodes = admitted(wrong).warnings
    assert braces.startswith("spec.template.spec.containers[main]: ${MASTER_ADDR} is not expanded")
    assert "--nnodes 8 but the gang has 4 members" in nodes


def test_a_job_whose_pods_would_be_refused_is_refused() -> None:
    wrong = of_kind("PyTorchJob")
    worker = wrong["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]
    worker["metadata"] = {"annotations": {"muster.dev/fabric": "token-ring"}}
    verdict = admitted(wrong)
    assert not verdict.allowed
    assert verdict.message.startswith("spec.pytorchReplicaSpecs.Worker.template.metadata.")


def test_a_job_whose_pods_come_one_by_one_hears_nothing_of_fabrics() -> None:
    bag = job()
    del bag["spec"]["completionMode"]
    without = facts({"profile": "gke-tcpxo", "nodeLabels": {"pool": "a"}}, withoutFabric="deny")
    assert admitted(bag, without).allowed


def test_an_object_without_accelerators_is_allowed_as_it_is() -> None:
    plain = job("q")
    plain["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {GPU: "0"}}
    assert admitted(plain).operations == ()


def test_where_nothing_is_injected_jobs_are_not_looked_at() -> None:
    request = review("Job", json.dumps(job("q")).encode())
    assert admit_mutating(request, ManagedPolicy(), ValidationRules())[0].operations == ()


# -- anything at all -------------------------------------------------------------------------------

SCALARS = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["Job", "true"])
FIELDS = st.text() | st.sampled_from(
    ["metadata", "spec", "template", "containers", "labels", "annotations", "name", "parallelism"]
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(["Job", *KINDS]), ANYTHING, ANYTHING, st.data())
def test_whatever_an_object_holds_it_gets_a_verdict(
    kind: str, spec: Json, strange: Json, data: st.DataObject
) -> None:
    document = job("q") if kind == "Job" else of_kind(kind, queue="q")
    where = data.draw(st.sampled_from(["spec", "metadata", "within"]))
    if where == "within":
        for each in templates(document):
            each.pod["spec"] = {"containers": [strange], "initContainers": spec}
    else:
        document[where] = spec
    verdict = admitted(document)
    assert verdict.allowed or verdict.message


def test_an_object_as_deep_as_a_stack_is_let_in_with_a_warning() -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    request = review("Job", deep.encode())
    verdict, done = admit_mutating(request, ManagedPolicy(), ValidationRules(), ROCE)
    assert verdict.allowed
    (warning,) = verdict.warnings
    assert warning.startswith("Job team-a/llama cannot be read: ")
    assert (done.templates, done.uncompleted) == ("unreadable", warning)


def test_the_warning_names_the_field_that_cannot_be_read_and_what_is_missing() -> None:
    wrong = of_kind("AppWrapper", queue="q")
    pod = wrong["spec"]["components"][0]["template"]["spec"]["template"]
    pod["metadata"] = {"labels": {"tier": "a", "rev": 7}}
    (warning,) = admitted(wrong).warnings
    assert warning == (
        "AppWrapper team-a/llama cannot be read: spec.components[0].template.spec.template."
        "metadata.labels.rev: Expected `str`, got `int`; what Muster adds to its pods is not in "
        "its templates, so a queue counts less"
    )
    assert len(warning) <= WARNING_CHARS


@pytest.mark.parametrize("early", list(Early))
def test_a_queued_object_that_comes_before_the_cluster_is_known_leads_to_a_warning(
    early: Early,
) -> None:
    for queue, outcome in (("research", "early"), ("", "")):
        request = review("Job", json.dumps(job(queue=queue)).encode())
        verdict, done = admit_mutating(request, ManagedPolicy(), ValidationRules(), early)
        assert verdict.allowed
        assert done.templates == outcome
        assert len(verdict.warnings) == (1 if queue else 0)


@pytest.mark.parametrize(
    ("document", "outcome"),
    [
        (job(queue="research"), "changed"),
        (job(), "unchanged"),
        (
            job(queue="research") | {"spec": {"template": {"spec": {"containers": [7]}}}},
            "unreadable",
        ),
    ],
)
def test_in_shadow_an_object_passes_as_it_is_and_what_would_become_of_it_is_counted(
    document: JSON, outcome: str
) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    body = json.dumps(document).encode()
    request = review(document["kind"], body, document["apiVersion"])
    verdict, done = admit_mutating(request, ManagedPolicy(), ValidationRules(), ROCE, Mode.SHADOW)
    metrics.mutated(done)
    assert verdict is ALLOWED
    assert done.templates == outcome
    name = "muster_webhook_objects_injected_total"
    assert registry.get_sample_value(name, {"outcome": outcome}) == 1


def test_a_refused_object_is_counted_as_one() -> None:
    document = job(queue="research")
    template = document["spec"]["template"]
    template.setdefault("metadata", {})["annotations"] = {"muster.dev/fabric": "no-such"}
    body = json.dumps(document).encode()
    request = review(document["kind"], body, document["apiVersion"])
    verdict, done = admit_mutating(request, ManagedPolicy(), ValidationRules(), ROCE)
    assert not verdict.allowed
    assert done.templates == "refused"
