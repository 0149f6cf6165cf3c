"""How a pod is bound, evicted and deleted."""

import time
from datetime import datetime

import pytest
from support.clusters.refusals import refused, strategic
from support.pods.wire import binding, gated, pod

from loadtest.testbed.client.api import JSON, Api

pytestmark = pytest.mark.asyncio(loop_scope="session")


def eviction_of(seen: JSON) -> JSON:
    """Return the eviction of a pod in the version in which it was seen."""
    meta = {key: seen["metadata"][key] for key in ("uid", "resourceVersion")}
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": seen["metadata"]["name"]},
        "deleteOptions": {"preconditions": meta},
    }


async def test_a_binding_assigns_annotates_and_sets_the_condition(api: Api, pods: str) -> None:
    made = await api.create(pods, pod())
    await strategic(api, f"{pods}/p/status", {"status": {"nominatedNodeName": "n0"}})
    body = binding(
        "p", "n1", uid=made["metadata"]["uid"], annotations={"a": "1"}, labels={"l": "2"}
    )
    reply = await api.create(f"{pods}/p/binding", body)
    assert (reply["kind"], reply["status"]) == ("Status", "Success")
    after = await api.get(f"{pods}/p")
    assert after["spec"]["nodeName"] == "n1"
    assert after["metadata"]["annotations"] == {"a": "1"}
    assert after["metadata"]["labels"] == {"l": "2"}
    assert "nominatedNodeName" not in after["status"]
    scheduled = [c["status"] for c in after["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert scheduled == ["True"]


async def test_a_pod_is_bound_once(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    await api.create(f"{pods}/p/binding", binding("p", "n1"))
    failure = await refused(api.create(f"{pods}/p/binding", binding("p", "n1")))
    assert (failure.code, failure.status["reason"]) == (409, "Conflict")
    assert 'pod p is already assigned to node "n1"' in failure.message


async def test_a_binding_for_another_uid_is_a_409(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    failure = await refused(api.create(f"{pods}/p/binding", binding("p", "n1", uid="another")))
    assert failure.code == 409
    assert "UID in precondition: another" in failure.message


async def test_a_gated_pod_is_not_bound(api: Api, pods: str) -> None:
    await api.create(pods, gated())
    failure = await refused(api.create(f"{pods}/p/binding", binding("p", "n1")))
    assert failure.code == 409
    assert "non-empty .spec.schedulingGates" in failure.message


async def test_a_pod_that_is_gone_is_not_bound(api: Api, pods: str) -> None:
    failure = await refused(api.create(f"{pods}/gone/binding", binding("gone", "n1")))
    assert failure.code == 404


async def test_an_evicted_pending_pod_is_gone_at_once(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    reply = await api.create(f"{pods}/p/eviction", eviction)
    assert reply["status"] == "Success"
    assert (await refused(api.get(f"{pods}/p"))).code == 404


async def test_an_eviction_of_an_older_version_is_refused_at_once(api: Api, pods: str) -> None:
    seen = await api.create(pods, pod())
    await api.create(f"{pods}/p/binding", binding("p", "n1"))
    failure = await refused(api.create(f"{pods}/p/eviction", eviction_of(seen)))
    assert failure.code == 409
    assert "deletionTimestamp" not in (await api.get(f"{pods}/p"))["metadata"]


async def test_an_eviction_of_the_version_that_was_seen_is_done(api: Api, pods: str) -> None:
    seen = await api.create(pods, pod())
    await api.create(f"{pods}/p/eviction", eviction_of(seen))
    assert (await refused(api.get(f"{pods}/p"))).code == 404


async def test_a_bound_pod_terminates_until_its_kubelet_lets_go(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    await api.create(f"{pods}/p/binding", binding("p", "n1"))
    before = time.time()
    reply = await api.delete(f"{pods}/p", grace_s=30)
    assert reply["metadata"]["deletionGracePeriodSeconds"] == 30
    killed = (await api.get(f"{pods}/p"))["metadata"]["deletionTimestamp"]
    by = datetime.fromisoformat(killed).timestamp()
    assert before + 29 <= by <= time.time() + 31, "when it is killed, in whole seconds"
    await api.delete(f"{pods}/p", grace_s=0)
    assert (await refused(api.get(f"{pods}/p"))).code == 404


async def test_an_unassigned_pod_is_deleted_without_grace(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    await api.delete(f"{pods}/p", grace_s=30)
    assert (await refused(api.get(f"{pods}/p"))).code == 404


async def test_a_deletion_for_another_uid_is_a_409(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    failure = await refused(api.delete(f"{pods}/p", uid="another"))
    assert failure.code == 409
    assert "UID in the precondition (another)" in failure.message


async def test_finalizers_keep_a_deleted_pod(api: Api, pods: str) -> None:
    body = pod()
    body["metadata"]["finalizers"] = ["a.example/x"]
    await api.create(pods, body)
    await api.delete(f"{pods}/p")
    assert "deletionTimestamp" in (await api.get(f"{pods}/p"))["metadata"]
    await strategic(api, f"{pods}/p", {"metadata": {"finalizers": None}})
    assert (await refused(api.get(f"{pods}/p"))).code == 404


async def test_a_deleted_pod_is_not_bound(api: Api, pods: str) -> None:
    body = pod()
    body["metadata"]["finalizers"] = ["a.example/x"]
    await api.create(pods, body)
    await api.delete(f"{pods}/p")
    failure = await refused(api.create(f"{pods}/p/binding", binding("p", "n1")))
    assert failure.code == 409
    assert "is being deleted" in failure.message
    await strategic(api, f"{pods}/p", {"metadata": {"finalizers": None}})
