"""What may be written into a pod: the release PATCH and everything next to it."""

from typing import Any

import pytest
from support.clusters.refusals import refused, strategic
from support.pods.wire import GATE, gated, lift, pinned, pod, selecting

from loadtest.testbed.client.api import JSON_PATCH, PARTIAL, STRATEGIC_PATCH, Api

pytestmark = pytest.mark.asyncio(loop_scope="session")


_HELD = {"name": "test.example/held"}


async def test_a_new_pod_is_pending_defaulted_and_has_generation_one(api: Api, pods: str) -> None:
    body = pod()
    del body["spec"]["schedulerName"]
    made = await api.create(pods, body | {"spec": body["spec"] | {"schedulingGates": [_HELD]}})
    assert made["status"]["phase"] == "Pending"
    assert made["metadata"]["generation"] == 1
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert made["spec"]["priority"] == 0
    keys = [t["key"] for t in made["spec"]["tolerations"]]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]


async def test_a_gated_pod_says_that_it_is_gated(api: Api, pods: str) -> None:
    made = await api.create(pods, gated())
    condition = made["status"]["conditions"][0]
    assert condition["type"] == "PodScheduled"
    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")


async def test_generated_names_end_in_five_characters(api: Api, pods: str) -> None:
    body = pod() | {"metadata": {"generateName": "worker-"}}
    name = (await api.create(pods, body))["metadata"]["name"]
    assert name.startswith("worker-")
    assert len(name) == len("worker-") + 5


async def test_a_taken_name_is_a_409_already_exists(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    failure = await refused(api.create(pods, pod()))
    assert failure.code == 409
    assert failure.status["reason"] == "AlreadyExists"
    assert failure.message == 'pods "p" already exists'


async def test_a_missing_namespace_is_a_404(api: Api) -> None:
    failure = await refused(api.create("/api/v1/namespaces/nowhere/pods", pod()))
    assert (failure.code, failure.message) == (404, 'namespaces "nowhere" not found')


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": []}, "spec.containers"),
        (
            {
                "containers": [
                    {
                        "name": "a",
                        "image": "b",
                        "resources": {"requests": {"example.com/gpu": "1"}},
                    }
                ]
            },
            "spec.containers[0].resources.limits",
        ),
        ({"nodeName": "n", "schedulingGates": [{"name": GATE}]}, "spec.nodeName"),
        (
            {"affinity": {"nodeAffinity": pinned("a")["nodeAffinity"]}, "containers": []},
            "spec.containers",
        ),
    ],
)
async def test_a_wrong_pod_is_a_422_that_names_the_field(
    api: Api, pods: str, spec: dict[str, Any], field: str
) -> None:
    failure = await refused(api.create(pods, pod("wrong", **spec)))
    assert (failure.code, failure.status["reason"]) == (422, "Invalid")
    assert field in [cause["field"] for cause in failure.status["details"]["causes"]]
    assert failure.message.startswith('Pod "wrong" is invalid: ')


async def test_match_fields_take_exactly_one_value(api: Api, pods: str) -> None:
    affinity = pinned("n1")
    required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"][0]["matchFields"][0]["values"] = ["n1", "n2"]
    failure = await refused(api.create(pods, pod(affinity=affinity)))
    assert failure.code == 422
    assert "must be only one value" in failure.message


async def test_one_patch_lifts_the_gate_pins_and_annotates(api: Api, pods: str) -> None:
    made = await api.create(pods, gated("p", GATE, "other.example/hold"))
    patch = {
        "metadata": {"uid": made["metadata"]["uid"], "annotations": {"muster.dev/plan": "{}"}},
        "spec": {"schedulingGates": lift(), "affinity": pinned("n1", "n2")},
    }
    reply = await api.patch(f"{pods}/p", patch, kind=STRATEGIC_PATCH, accept=PARTIAL)
    assert reply["kind"] == "PartialObjectMetadata"
    assert set(reply) == {"kind", "apiVersion", "metadata"}
    after = await api.get(f"{pods}/p")
    assert after["spec"]["schedulingGates"] == [{"name": "other.example/hold"}]
    assert after["spec"]["affinity"] == pinned("n1", "n2")
    assert after["metadata"]["annotations"] == {"muster.dev/plan": "{}"}
    assert after["metadata"]["generation"] == 2


async def test_lifting_the_last_gate_leaves_no_list(api: Api, pods: str) -> None:
    await api.create(pods, gated())
    after = await strategic(api, f"{pods}/p", {"spec": {"schedulingGates": lift()}})
    assert "schedulingGates" not in after["spec"]


async def test_releasing_twice_alike_writes_once(api: Api, pods: str) -> None:
    await api.create(pods, gated())
    patch = {"spec": {"schedulingGates": lift(), "affinity": pinned("n1")}}
    first = await strategic(api, f"{pods}/p", patch)
    second = await strategic(api, f"{pods}/p", patch)
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_releasing_again_to_another_node_is_refused(api: Api, pods: str) -> None:
    await api.create(pods, gated())
    for node, code in (("n1", 0), ("n2", 422)):
        call = strategic(
            api, f"{pods}/p", {"spec": {"schedulingGates": lift(), "affinity": pinned(node)}}
        )
        if code:
            assert (await refused(call)).code == code
        else:
            await call


async def test_a_patch_for_another_uid_is_a_422(api: Api, pods: str) -> None:
    await api.create(pods, gated())
    patch = {"metadata": {"uid": "another"}, "spec": {"schedulingGates": lift()}}
    failure = await refused(strategic(api, f"{pods}/p", patch))
    assert failure.code == 422
    assert "metadata.uid" in failure.message
    assert "field is immutable" in failure.message


async def test_a_patch_for_a_pod_that_is_gone_is_a_404(api: Api, pods: str) -> None:
    failure = await refused(strategic(api, f"{pods}/gone", {"metadata": {"labels": {"a": "b"}}}))
    assert (failure.code, failure.message) == (404, 'pods "gone" not found')


async def test_a_patch_with_an_old_resource_version_is_a_409(api: Api, pods: str) -> None:
    made = await api.create(pods, gated())
    await strategic(api, f"{pods}/p", {"metadata": {"labels": {"a": "b"}}})
    old = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    failure = await refused(
        strategic(api, f"{pods}/p", old | {"spec": {"activeDeadlineSeconds": 5}})
    )
    assert (failure.code, failure.status["reason"]) == (409, "Conflict")
    assert "the object has been modified" in failure.message


@pytest.mark.parametrize(
    "spec",
    [
        {"schedulingGates": [{"name": "other.example/new"}]},
        {"schedulerName": "another"},
        {"nodeName": "n1"},
        {"priority": 7},
        {"affinity": {"podAntiAffinity": {}}},
    ],
    ids=["add a gate", "schedulerName", "nodeName", "priority", "pod affinity"],
)
async def test_the_rest_of_a_gated_pod_cannot_be_changed(
    api: Api, pods: str, spec: dict[str, Any]
) -> None:
    await api.create(pods, gated())
    before = await api.get(f"{pods}/p")
    failure = await refused(strategic(api, f"{pods}/p", {"spec": spec}))
    assert (failure.code, failure.status["reason"]) == (422, "Invalid")
    assert await api.get(f"{pods}/p") == before


HAS_DISK = {"key": "disk", "operator": "Exists"}


async def test_affinity_of_a_gated_pod_can_be_tightened_in_each_term(api: Api, pods: str) -> None:
    await api.create(pods, gated(affinity=selecting(HAS_DISK), nodeSelector={"a": "b"}))
    tight = selecting(HAS_DISK)
    term = tight["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    term["nodeSelectorTerms"][0] |= pinned("n1")["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"][0]
    patch = {"spec": {"affinity": tight, "nodeSelector": {"c": "d"}}}
    after = await strategic(api, f"{pods}/p", patch)
    assert after["spec"]["affinity"] == tight
    assert after["spec"]["nodeSelector"] == {"a": "b", "c": "d"}


@pytest.mark.parametrize(
    "change",
    [
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}},
        {"affinity": selecting({"key": "disk", "operator": "DoesNotExist"})},
        {"nodeSelector": {"a": None}},
        {"nodeSelector": {"a": "changed"}},
    ],
    ids=["term removed", "term changed", "selector removed", "selector changed"],
)
async def test_affinity_of_a_gated_pod_cannot_be_loosened(
    api: Api, pods: str, change: dict[str, Any]
) -> None:
    await api.create(pods, gated(affinity=selecting(HAS_DISK), nodeSelector={"a": "b"}))
    assert (await refused(strategic(api, f"{pods}/p", {"spec": change}))).code == 422


async def test_affinity_terms_cannot_be_added_to_existing_ones(api: Api, pods: str) -> None:
    await api.create(pods, gated(affinity=pinned("n1")))
    failure = await refused(strategic(api, f"{pods}/p", {"spec": {"affinity": pinned("n1", "n2")}}))
    assert failure.code == 422


async def test_preferred_affinity_of_a_gated_pod_can_be_set_freely(api: Api, pods: str) -> None:
    await api.create(pods, gated())
    term = pinned("n1")["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    preferred = [{"weight": 100, "preference": term["nodeSelectorTerms"][0]}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    after = await strategic(api, f"{pods}/p", {"spec": {"affinity": affinity}})
    assert after["spec"]["affinity"] == affinity


async def test_affinity_is_fixed_once_the_gates_are_gone(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    failure = await refused(strategic(api, f"{pods}/p", {"spec": {"affinity": pinned("n1")}}))
    assert failure.code == 422


async def test_tolerations_may_be_added_only(api: Api, pods: str) -> None:
    made = await api.create(pods, pod())
    more = [*made["spec"]["tolerations"], {"key": "gpu", "operator": "Exists"}]
    after = await api.patch(f"{pods}/p", {"spec": {"tolerations": more}})
    assert after["spec"]["tolerations"] == more
    failure = await refused(api.patch(f"{pods}/p", {"spec": {"tolerations": more[:1]}}))
    assert failure.code == 422


async def test_merge_patch_replaces_lists_and_strategic_merges_them(api: Api, pods: str) -> None:
    await api.create(pods, gated("p", GATE, "other.example/hold"))
    path = f"{pods}/p"
    image = {"spec": {"containers": [{"name": "main", "image": "example.com/train:2"}]}}
    after = await strategic(api, path, image)
    assert after["spec"]["containers"][0]["image"] == "example.com/train:2"
    assert after["spec"]["containers"][0]["terminationMessagePath"] == "/dev/termination-log"
    merged = await api.patch(path, {"spec": {"schedulingGates": [{"name": GATE}]}})
    assert merged["spec"]["schedulingGates"] == [{"name": GATE}]


async def test_json_patch_adds_tests_and_removes(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    operations = [
        {"op": "add", "path": "/metadata/labels", "value": {"a/b": "1"}},
        {"op": "test", "path": "/metadata/labels/a~1b", "value": "1"},
        {"op": "copy", "from": "/metadata/labels/a~1b", "path": "/metadata/labels/c"},
    ]
    after = await api.patch(f"{pods}/p", operations, kind=JSON_PATCH)
    assert after["metadata"]["labels"] == {"a/b": "1", "c": "1"}
    wrong = [{"op": "test", "path": "/metadata/labels/c", "value": "2"}]
    assert (await refused(api.patch(f"{pods}/p", wrong, kind=JSON_PATCH))).code == 422


async def test_finalizers_and_owners_merge_by_their_keys(api: Api, pods: str) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u1"}
    body = pod()
    body["metadata"] |= {"finalizers": ["a.example/x"], "ownerReferences": [owner]}
    await api.create(pods, body)
    patch = {
        "metadata": {
            "finalizers": ["b.example/y"],
            "$deleteFromPrimitiveList/finalizers": ["a.example/x"],
            "ownerReferences": [{"uid": "u1", "controller": True}],
        }
    }
    after = await strategic(api, f"{pods}/p", patch)
    assert after["metadata"]["finalizers"] == ["b.example/y"]
    assert after["metadata"]["ownerReferences"] == [owner | {"controller": True}]
    await strategic(api, f"{pods}/p", {"metadata": {"finalizers": None}})


async def test_status_and_spec_have_endpoints_of_their_own(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    path = f"{pods}/p"
    ignored = await strategic(api, path, {"status": {"phase": "Failed"}})
    assert ignored["status"]["phase"] == "Pending"
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "n1"}}
    after = await strategic(api, f"{path}/status", patch)
    assert after["status"]["phase"] == "Running"
    assert "nodeName" not in after["spec"]


async def test_conditions_merge_by_type(api: Api, pods: str) -> None:
    await api.create(pods, gated())
    ready = {"type": "Ready", "status": "False"}
    after = await strategic(api, f"{pods}/p/status", {"status": {"conditions": [ready]}})
    assert {c["type"] for c in after["status"]["conditions"]} == {"PodScheduled", "Ready"}
