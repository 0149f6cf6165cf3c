"""Lists in pages, watches with bookmarks, resuming, 410, selectors."""

import asyncio
from typing import Any

import pytest
from support.machine.patience import PATIENCE_S
from support.pods.wire import gated, lift, pod

from loadtest.testbed.client.api import STRATEGIC_PATCH, Api, ApiFailed
from loadtest.testbed.standins.simulated import Plane

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"


async def take(
    api: Api, path: str, count: int, version: str = "", **query: str
) -> list[tuple[str, dict[str, Any]]]:
    """Return the first ``count`` events of a watch, bookmarks included."""
    found: list[tuple[str, dict[str, Any]]] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in api.watch(path, version, **query):
            found.append(event)
            if len(found) == count:
                break
    return found


def names(events: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str]]:
    return [(verb, obj["metadata"]["name"]) for verb, obj in events]


async def five_pods(api: Api, pods: str) -> None:
    for i in range(5):
        await api.create(pods, pod(f"p{i}"))


async def test_pages_show_one_moment_even_when_objects_come_in_between(api: Api, pods: str) -> None:
    await five_pods(api, pods)
    first = await api.get(pods, limit="2")
    await api.create(pods, pod("p1-late"))
    seen = [item["metadata"]["name"] for item in first["items"]]
    page = first
    while token := page["metadata"].get("continue"):
        page = await api.get(pods, limit="2", **{"continue": token})
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        seen += [item["metadata"]["name"] for item in page["items"]]
    assert seen == ["p0", "p1", "p2", "p3", "p4"]
    assert first["metadata"]["remainingItemCount"] == 3


async def test_a_list_from_the_cache_is_not_paged(api: Api, pods: str) -> None:
    await five_pods(api, pods)
    found = 0
    async with asyncio.timeout(PATIENCE_S):
        while (
            found < 5
        ):  # the cache follows etcd with a delay, and "0" asks for no more than it has
            page = await api.get(pods, limit="2", resourceVersion="0")
            assert "continue" not in page["metadata"]
            found = len(page["items"])
    assert found == 5


async def test_items_of_a_built_in_list_carry_no_type(api: Api, pods: str) -> None:
    await api.create(pods, pod())
    listed = await api.get(pods)
    assert (listed["kind"], listed["apiVersion"]) == ("PodList", "v1")
    assert "kind" not in listed["items"][0]


async def test_a_broken_continue_token_is_a_400(api: Api, pods: str) -> None:
    with pytest.raises(ApiFailed) as caught:
        await api.get(pods, **{"continue": "nonsense"})
    assert caught.value.code == 400


async def test_a_version_of_the_future_is_a_504_that_says_so(api: Api, pods: str) -> None:
    with pytest.raises(ApiFailed) as caught:
        await api.get(pods, resourceVersion="999999999")
    assert caught.value.code == 504
    assert "Too large resource version" in caught.value.message


async def test_an_unknown_field_selector_is_a_400(api: Api, pods: str) -> None:
    with pytest.raises(ApiFailed) as caught:
        await api.get(pods, fieldSelector="spec.nodes=1")
    assert (caught.value.code, caught.value.message) == (
        400,
        "field label not supported: spec.nodes",
    )


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=a", ["p0"]),
        ("tier!=a", ["p1", "p2"]),
        ("tier in (a,b)", ["p0", "p1"]),
        ("tier notin (a)", ["p1", "p2"]),
        ("tier", ["p0", "p1"]),
        ("!tier", ["p2"]),
        ("tier,zone=z", ["p1"]),
    ],
)
async def test_label_selectors(api: Api, pods: str, selector: str, expected: list[str]) -> None:
    for i, labels in enumerate(({"tier": "a"}, {"tier": "b", "zone": "z"}, {})):
        body = pod(f"p{i}")
        body["metadata"]["labels"] = labels
        await api.create(pods, body)
    listed = await api.get(pods, labelSelector=selector)
    assert [item["metadata"]["name"] for item in listed["items"]] == expected


async def test_a_watch_from_a_list_sees_each_write_once_and_in_order(api: Api, pods: str) -> None:
    version = (await api.get(pods))["metadata"]["resourceVersion"]
    await api.create(pods, gated())
    await api.patch(f"{pods}/p", {"spec": {"schedulingGates": lift()}}, kind=STRATEGIC_PATCH)
    await api.delete(f"{pods}/p")
    events = await take(api, pods, 4, version)
    assert [verb for verb, _ in events] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert events[2][1]["metadata"]["deletionGracePeriodSeconds"] == 0
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in events]
    assert versions == sorted(set(versions))


async def test_a_write_that_changes_nothing_is_not_watched(api: Api, pods: str) -> None:
    made = await api.create(pods, pod())
    await api.patch(f"{pods}/p", {"metadata": {"labels": None}})
    await api.patch(f"{pods}/p", {"metadata": {"labels": {"a": "b"}}})
    events = await take(api, pods, 1, made["metadata"]["resourceVersion"])
    assert events[0][1]["metadata"]["labels"] == {"a": "b"}


async def test_a_watch_resumes_after_its_last_version(api: Api, pods: str) -> None:
    version = (await api.get(pods))["metadata"]["resourceVersion"]
    await five_pods(api, pods)
    first = await take(api, pods, 2, version)
    rest = await take(api, pods, 3, first[-1][1]["metadata"]["resourceVersion"])
    assert [name for _, name in names(first + rest)] == ["p0", "p1", "p2", "p3", "p4"]


async def test_objects_enter_and_leave_a_selection(api: Api, pods: str) -> None:
    version = (await api.get(pods))["metadata"]["resourceVersion"]
    await api.create(pods, pod())
    for label in ("yes", "yes-still", None):
        patch = {"metadata": {"labels": {"chosen": label}}}
        await api.patch(f"{pods}/p", patch)
    events = await take(api, pods, 3, version, labelSelector="chosen")
    assert [verb for verb, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[2][1]["metadata"]["labels"] == {"chosen": "yes-still"}
    after = await api.get(f"{pods}/p")
    assert events[2][1]["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


async def test_a_bound_pod_enters_the_selection_of_assigned_pods(api: Api, pods: str) -> None:
    version = (await api.get(pods))["metadata"]["resourceVersion"]
    await api.create(pods, pod())
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    await api.create(f"{pods}/p/binding", body)
    events = await take(api, pods, 1, version, fieldSelector="spec.nodeName!=")
    assert names(events) == [("ADDED", "p")]


async def test_the_pods_of_a_node_are_listed_by_namespace_and_labels_too(
    api: Api, pods: str
) -> None:
    for number, node in enumerate(("n1", "n1", "n2")):
        await api.create(pods, pod(f"p{number}"))
        body = {"metadata": {"name": f"p{number}"}, "target": {"kind": "Node", "name": node}}
        await api.create(f"{pods}/p{number}/binding", body)
    await api.patch(f"{pods}/p1", {"metadata": {"labels": {"chosen": "yes"}}})

    async def listed(**query: str) -> list[str]:
        found = await api.get(pods, **query)
        return [each["metadata"]["name"] for each in found["items"]]

    assert await listed(fieldSelector="spec.nodeName=n1") == ["p0", "p1"]
    assert await listed(fieldSelector="spec.nodeName=n1", labelSelector="chosen=yes") == ["p1"]
    await api.delete(f"{pods}/p1")
    assert await listed(fieldSelector="spec.nodeName=n1") == ["p0"]
    assert await listed(fieldSelector="spec.nodeName=n3") == []


async def test_initial_events_end_with_a_marked_bookmark(api: Api, pods: str) -> None:
    await five_pods(api, pods)
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    events = await take(api, pods, 6, "", **query)
    assert {name for _, name in names(events[:5])} == {"p0", "p1", "p2", "p3", "p4"}
    verb, bookmark = events[5]
    assert verb == "BOOKMARK"
    assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    created = await api.create(pods, pod("later"))
    assert names(await take(api, pods, 1, bookmark["metadata"]["resourceVersion"])) == [
        ("ADDED", "later")
    ]
    assert int(bookmark["metadata"]["resourceVersion"]) < int(
        created["metadata"]["resourceVersion"]
    )


@pytest.mark.parametrize(
    "query", [{"sendInitialEvents": "true"}, {"resourceVersionMatch": "NotOlderThan"}]
)
async def test_initial_events_and_their_version_match_go_together(
    api: Api, pods: str, query: dict[str, str]
) -> None:
    with pytest.raises(ApiFailed) as caught:
        await take(api, pods, 1, "", **query)
    assert caught.value.code == 422


async def test_a_watch_ends_when_its_time_is_over(api: Api, pods: str) -> None:
    version = (await api.get(pods))["metadata"]["resourceVersion"]
    async with asyncio.timeout(PATIENCE_S):
        assert [e async for e in api.watch(pods, version, timeoutSeconds="1")] == []


async def test_bookmarks_move_the_version_on_before_the_watch_ends(api: Api, pods: str) -> None:
    """Two seconds before the end, and once a minute (the simulation's period is shorter here).

    The real server sends none before something newer than the watch itself has happened.
    """
    version = (await api.get(pods))["metadata"]["resourceVersion"]
    await api.create(pods, pod("before"))
    query = {"timeoutSeconds": "6", "allowWatchBookmarks": "true"}
    events = []
    async with asyncio.timeout(PATIENCE_S):
        async for verb, obj in api.watch(pods, version, **query):
            events.append((verb, int(obj["metadata"]["resourceVersion"])))
            if len(events) == 1:
                await api.create(pods, pod("after"))
    added = [revision for verb, revision in events if verb == "ADDED"]
    assert len(added) == 2
    assert events[-1][0] == "BOOKMARK"
    assert events[-1][1] >= added[-1]


async def custom_resource(api: Api, group: str) -> str:
    """Define a PodGroup-like resource; returns its path in the default namespace."""
    definition = {
        "metadata": {"name": f"podgroups.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "podgroups", "kind": "PodGroup", "listKind": "PodGroupList"},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    path = f"/apis/{group}/v1alpha1/namespaces/default/podgroups"
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await api.get(path)
            except ApiFailed as failure:
                if failure.code not in (404, 429):  # 429: the real one initialises its storage
                    raise
                await asyncio.sleep(0.1)
            else:
                return path


async def test_a_watch_from_before_the_history_gets_410_in_the_stream(
    api: Api, namespace: str
) -> None:
    path = await custom_resource(api, f"{namespace}.example.com")
    [(verb, status)] = await take(api, path, 1, "1")
    assert verb == "ERROR"
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


async def test_custom_resources_keep_status_apart_and_take_no_strategic_patch(
    api: Api, namespace: str
) -> None:
    path = await custom_resource(api, f"{namespace}.example.com")
    group = {
        "apiVersion": f"{namespace}.example.com/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"minMember": 2},
        "status": {"phase": "lost"},
    }
    made = await api.create(path, group)
    assert "status" not in made
    with pytest.raises(ApiFailed) as caught:
        await api.patch(f"{path}/g", {"spec": {"minMember": 3}}, kind=STRATEGIC_PATCH)
    assert caught.value.code == 415
    after = await api.patch(f"{path}/g/status", {"status": {"phase": "ok"}, "spec": {}})
    assert (after["status"], after["spec"]) == ({"phase": "ok"}, {"minMember": 2})
    assert after["metadata"]["generation"] == 1


async def test_leases_are_taken_by_resource_version(api: Api, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    made = await api.create(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})
    second = dict(made, spec={"holderIdentity": "b"})
    await api.replace(f"{path}/l", second)
    with pytest.raises(ApiFailed) as caught:
        await api.replace(f"{path}/l", dict(made, spec={"holderIdentity": "c"}))
    assert caught.value.code == 409


async def test_who_has_no_token_is_nobody(plane: Plane) -> None:
    async with Api(plane.url, ca=plane.credentials.ca) as stranger:
        with pytest.raises(ApiFailed) as caught:
            await stranger._send("GET", "/api/v1/nodes")
    assert caught.value.code in (401, 403)
