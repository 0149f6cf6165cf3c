"""Gangs that Kubernetes itself knows as such: `workloadRef` in 1.35, `schedulingGroup` in 1.36.

Their feature gates are alpha and off by default. Where they are on, kube-scheduler holds a gang's
pods back by itself, and 1.36 decides them in one cycle: Muster releases pods a few at a time, and
neither side may wait for the other.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.apiservers.eventually import eventually
from support.apiservers.fake_extender import DEFAULTS, FakeExtender
from support.extenders.realcluster import JSON, PODS, cluster, is_bound, is_released, racks

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.nodes import create_all, create_nodes, grid
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane, native_gangs
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SCHEDULING = "/apis/scheduling.k8s.io"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def native(minor: Minor) -> AsyncIterator[tuple[Minor, ControlPlane]]:
    async with ControlPlane(native_gangs(minor, rbac=RBAC)) as plane:
        yield minor, plane


async def create_native(api: Api, minor: Minor, name: str, minimum: int) -> JSON:
    """Create the gang's own object; return the field of a pod's spec that names it."""
    policy = {"gang": {"minCount": minimum}}
    if minor == "1.35":
        path = f"{SCHEDULING}/v1alpha1/namespaces/default/workloads"
        spec = {"podGroups": [{"name": "workers", "policy": policy}]}
        await api.create(path, {"metadata": {"name": name}, "spec": spec})
        return {"workloadRef": {"name": name, "podGroup": "workers"}}
    path = f"{SCHEDULING}/v1alpha2/namespaces/default/podgroups"
    await api.create(path, {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy}})
    return {"schedulingGroup": {"podGroupName": name}}


async def test_a_native_gang_released_a_few_pods_at_a_time_is_bound_whole_on_one_rack(
    native: tuple[Minor, ControlPlane],
) -> None:
    """Racks r0 and r1 of 16 hosts; 12 pods of one host each, four releases in flight."""
    minor, plane = native
    async with cluster(plane, releaseConcurrency=4) as fleet:
        await fleet.add_racks(range(2))
        gang = pods.Gang("native", 12, required="muster.dev/rack")
        reference = await create_native(fleet.api, minor, gang.name, gang.size)
        owner = await pods.create_owner(fleet.api, gang)
        members = list(pods.members(gang, owner))
        for pod in members:
            pod["spec"] |= reference
        await create_all(fleet.api, PODS, members)
        await fleet.bound(gang)
        assert len(racks(await fleet.placement(gang))) == 1


async def test_a_release_leaves_the_reference_to_the_native_gang_alone(
    native: tuple[Minor, ControlPlane],
) -> None:
    minor, plane = native
    async with cluster(plane) as fleet:
        await fleet.add_racks([0])
        gang = pods.Gang("kept", 1)
        reference = await create_native(fleet.api, minor, gang.name, 1)
        [pod] = pods.members(gang, await pods.create_owner(fleet.api, gang))
        pod["spec"] |= reference
        await fleet.api.create(PODS, pod)
        await fleet.bound(gang)
        [bound] = await fleet.list_pods(gang)
        assert {key: bound["spec"][key] for key in reference} == reference


async def test_a_gang_that_only_its_native_object_tells_of_waits_for_its_last_member(
    native: tuple[Minor, ControlPlane],
) -> None:
    """No label of Muster's anywhere; one rack of 16."""
    minor, plane = native
    async with cluster(plane) as fleet:
        await fleet.add_racks([0])
        reference = await create_native(fleet.api, minor, "alone", 3)
        members = [pods.pod(f"alone-{i}", gpus=8) for i in range(3)]
        for pod in members:
            pod["spec"] |= reference
        await create_all(fleet.api, PODS, members[:2])
        await asyncio.sleep(2.0)  # several planning cycles and scheduling attempts
        assert [p for p in await fleet.list_pods() if is_released(p)] == []
        await fleet.api.create(PODS, members[2])
        for pod in members:
            await eventually(fleet.api, f"{PODS}/{pod['metadata']['name']}", is_bound)


@pytest_asyncio.fixture(loop_scope="module")
async def asked(
    native: tuple[Minor, ControlPlane],
) -> AsyncIterator[tuple[Minor, Api, FakeExtender]]:
    """kube-scheduler with the shipped configuration and an extender that the test drives."""
    minor, plane = native
    async with FakeExtender() as extender, plane.api() as api:
        config = schedulerconfig.write(
            "recommended",
            directory=plane.directory,
            kubeconfig=plane.kubeconfig(SCHEDULER),
            extender_url=extender.url,
        )
        # The stand-in serves /v1/VERB.
        config.write_text(config.read_text().replace("/v1/extender", "/v1"))
        await create_nodes(api, grid(4))
        await plane.start_scheduler(config)
        yield minor, api, extender
        await plane.stop(SCHEDULER)
        for path in (PODS, "/api/v1/nodes"):
            await api.delete(path)


async def test_one_member_turned_away_keeps_a_native_gang_from_being_bound_until_it_is_let_in(
    asked: tuple[Minor, Api, FakeExtender],
) -> None:
    """Four hosts, three members. kube-scheduler asks for each; two are let in, the last is not.

    In 1.35 the two wait at Permit; in 1.36 all three go back to the queue together.
    """
    minor, api, extender = asked
    reference = await create_native(api, minor, "all-or-none", 3)
    names = [f"all-or-none-{i}" for i in range(3)]
    last = f"default/{names[2]}"

    def turn_away(body: JSON) -> JSON:
        failed = dict.fromkeys(body["NodeNames"], "waits for its gang")
        return {"NodeNames": [], "FailedAndUnresolvableNodes": failed, "Error": ""}

    extender.on(last, "filter", turn_away)
    for name in names:
        made = pods.pod(name, gpus=8)
        made["spec"] |= reference
        await api.create(PODS, made)
    await extender.wait_for(last, "filter")
    for name in names[:2]:
        await extender.wait_for(f"default/{name}", "filter")
    items, _ = await api.list_all(PODS)
    assert [p["metadata"]["name"] for p in items if p["spec"].get("nodeName")] == []
    extender.on(last, "filter", DEFAULTS["filter"])
    # What Muster does for a waiting pod: a change of its own wakes it.
    wake = {"metadata": {"annotations": {"muster.dev/woken": "1"}}}
    await api.patch(f"{PODS}/{names[2]}", wake)
    for name in names:
        await eventually(api, f"{PODS}/{name}", lambda p: "nodeName" in p["spec"])


async def test_what_the_extender_is_told_is_the_same_for_members_of_a_native_gang(
    asked: tuple[Minor, Api, FakeExtender],
) -> None:
    """1.36 assumes members in its snapshot while it decides a gang; the body does not show it."""
    minor, api, extender = asked
    reference = await create_native(api, minor, "told", 2)
    for name in ("told-0", "told-1"):
        made = pods.pod(name, gpus=8)
        made["spec"] |= reference
        await api.create(PODS, made)
    for name in ("told-0", "told-1"):
        await eventually(api, f"{PODS}/{name}", lambda p: "nodeName" in p["spec"])
        call = extender.seen(f"default/{name}", "filter")[-1]
        assert list(call.body) == ["Pod", "Nodes", "NodeNames"]
        assert "nodeName" not in call.body["Pod"]["spec"]
        assert {key: call.body["Pod"]["spec"][key] for key in reference} == reference
    # The second member was not shown the host that the first one had just been given.
    given = [await api.get(f"{PODS}/{name}") for name in ("told-0", "told-1")]
    first, second = (pod["spec"]["nodeName"] for pod in given)
    assert first != second


@pytest.mark.asyncio(loop_scope="session")
async def test_without_its_feature_gate_no_native_gang_is_served(real_plane: ControlPlane) -> None:
    """Where nothing is served Muster must not expect it: the group's alpha versions answer 404."""
    async with real_plane.api() as api:
        for version in ("v1alpha1", "v1alpha2"):
            with pytest.raises(ApiFailed, match="404"):
                await api.get(f"{SCHEDULING}/{version}")
