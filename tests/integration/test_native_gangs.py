"""Gangs that Kubernetes itself knows as such: `workloadRef` in 1.35, `schedulingGroup` in 1.36.

Their feature gates are alpha and off by default. Where they are on, kube-scheduler holds a gang's
pods back by itself, and 1.36 decides them in one cycle: Muster releases pods a few at a time, and
neither side may wait for the other.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.realcluster import JSON, PODS, cluster, racks

from loadtest import pods
from loadtest.api import Api, ApiFailed
from loadtest.assets import MINORS, Minor
from loadtest.controlplane import ControlPlane, Options, native_gangs
from loadtest.muster import RBAC
from loadtest.nodes import create_all

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SCHEDULING = "/apis/scheduling.k8s.io"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MINORS)
async def native(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Minor, ControlPlane]]:
    async with ControlPlane(native_gangs(request.param, rbac=RBAC)) as plane:
        yield request.param, plane


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


@pytest.mark.parametrize("minor", MINORS)
async def test_without_its_feature_gate_no_native_gang_is_served(minor: Minor) -> None:
    """Where nothing is served Muster must not expect it: the group's alpha versions answer 404."""
    async with ControlPlane(Options(minor=minor)) as plane, plane.api() as api:
        for version in ("v1alpha1", "v1alpha2"):
            with pytest.raises(ApiFailed, match="404"):
                await api.get(f"{SCHEDULING}/{version}")
