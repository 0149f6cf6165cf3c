"""Isolated networks with the shipped rights and no others, audited by a real API server.

::

    extender (muster-extender) ──┐                       ┌─► audit log: every call, by whom, and
                                 ├──► kube-apiserver ────┤   how it was answered
    agents (muster-vni-agent) ───┘                       └─► compared with the roles: what is used
                                                             is granted, what is granted is used
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry
from support.apiservers.audited import AuditedPlane, audited_plane, granted, is_allowed
from support.extenders.realcluster import PODS, Cluster, cluster, until
from support.networks.agenttokens import identity
from support.networks.jobnetworks import (
    ATTACHMENTS,
    COMPONENT,
    NETWORKS,
    NODES,
    POOLS,
    isolated,
    pool,
)
from support.networks.kerneldevices import KernelLinks
from support.networks.networksinstalled import installed

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane
from loadtest.testbed.deployment.muster import RBAC
from muster.kube.client import KubeClient
from muster.vniagent.agent import Agent
from muster.vniagent.metrics import AgentMetrics

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# Kinds of the group that networks have nothing to do with: profiles are read for pods that slipped
# past admission, queues for who is next.
OTHERS = {"clusterprofiles", "fabricprofiles", "queues", "queues/status"}
OURS, MULTUS = "muster.dev", "k8s.cni.cncf.io"
EXTENDER = "system:serviceaccount:muster-system:muster-extender"
AGENT = "system:serviceaccount:muster-system:muster-vni-agent"
HOSTS = ("r0-h00", "r0-h01")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def audited(
    minor: Minor, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AuditedPlane]:
    async with audited_plane(minor, tmp_path_factory.mktemp("audit")) as running:
        yield running


@asynccontextmanager
async def agents(api: Api, plane: ControlPlane, folder: Path) -> AsyncIterator[None]:
    """Run an agent for each node, with the identity of the DaemonSet's pods."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        running = []
        for number, name in enumerate(HOSTS, 1):
            shown = await identity(api, plane, name, folder)
            client = await stack.enter_async_context(KubeClient(shown))
            metrics = AgentMetrics(CollectorRegistry())
            made = Agent(client, KernelLinks(), name, f"10.0.0.{number}", metrics, resync_s=300.0)
            running.append(group.create_task(made.run()))
        try:
            yield
        finally:
            for task in running:
                task.cancel()


async def names(api: Api, path: str) -> set[str]:
    return {each["metadata"]["name"] for each in (await api.get(path))["items"]}


def somebodys(vni: int) -> JSON:
    """Return a network that the leader has not made; its gang is not there."""
    spec = {"vni": vni, "pool": "jobs", "gang": "muster/default/gone", "namespace": "default"}
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "JobNetwork",
        "metadata": {"name": f"vni-{vni}"},
        "spec": {**spec, "subnet": "198.18.0.0/15", "mtu": 1450, "port": 4789, "nodes": []},
    }


async def live(fleet: Cluster, api: Api) -> None:
    """Have networks made, taken over by a new leader, refused, moved, and given back."""
    one, two = isolated("one", 2, gpus=3), isolated("two", 2, gpus=3)
    await fleet.submit(one)
    await fleet.bound(one)
    fleet.muster.extender.kill()
    await fleet.api.delete(f"{PODS}/one-1")
    await fleet.muster.start(fleet.muster.extender)
    *_, last = pods.members(one)
    await fleet.api.create(PODS, last)  # its network's attachment is put right
    await fleet.bound(one)
    await api.create(NETWORKS, somebodys(1001))  # which the leader is about to take
    await fleet.submit(two)
    await fleet.bound(two)
    for gang in (one, two):
        for rank in range(gang.size):
            await fleet.api.delete(f"{PODS}/{gang.name}-{rank}")


async def test_each_right_on_networks_is_used_and_no_other_is_needed(
    audited: AuditedPlane, tmp_path: Path
) -> None:
    async with installed(audited.plane) as api:
        await api.create(POOLS, pool("jobs", 1000, 1003))
        ghost = {"apiVersion": "muster.dev/v1alpha1", "kind": "NodeNetwork"}
        await api.create(NODES, {**ghost, "metadata": {"name": "ghost"}})
        async with cluster(audited.plane, spareCount=0) as fleet:
            await fleet.add_racks([0], hosts=len(HOSTS))
            async with agents(api, audited.plane, tmp_path):
                await until(lambda: _has(api, NODES, *HOSTS))
                await live(fleet, api)
                await until(lambda: _is_empty(api, NETWORKS))
                await until(lambda: _is_empty(api, ATTACHMENTS))
                await until(lambda: _lacks(api, NODES, "ghost"), patience_s=150.0)
    files: dict[str, tuple[Path, str]] = {
        EXTENDER: (RBAC, "muster-extender"),
        AGENT: (COMPONENT / "agent.yaml", "muster-vni-agent"),
    }
    for user, (manifest, role) in files.items():
        calls = list(audited.calls(user))
        assert [call for call, code in calls if code == 403] == []
        used = {call for call, _ in calls if call.group in (OURS, MULTUS)}
        given = granted(manifest, role, (OURS, MULTUS))
        assert {call for call in used if call.resource not in OTHERS} == {
            call for call in given if call.resource not in OTHERS
        }


async def _has(api: Api, path: str, *wanted: str) -> bool:
    return set(wanted) <= await names(api, path)


async def _lacks(api: Api, path: str, name: str) -> bool:
    return name not in await names(api, path)


async def _is_empty(api: Api, path: str) -> bool:
    return not await names(api, path)


BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
BOUND: JSON = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "anna"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "muster-networks-reader",
    },
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "anna"}],
}
REFUSED = [
    *((AGENT, verb, OURS, "jobnetworks") for verb in ("create", "patch", "update", "delete")),
    *((AGENT, verb, OURS, "nodenetworks") for verb in ("get", "list", "watch", "delete")),
    *((AGENT, verb, OURS, "vnipools") for verb in ("get", "list", "patch")),
    *((AGENT, verb, MULTUS, "network-attachment-definitions") for verb in ("get", "create")),
    *((AGENT, "list", "", kind) for kind in ("pods", "nodes", "secrets", "configmaps")),
    (AGENT, "patch", "", "nodes/status"),
    (AGENT, "create", "", "serviceaccounts/token"),
    *((EXTENDER, verb, OURS, "vnipools") for verb in ("create", "patch", "update", "delete")),
    *((EXTENDER, verb, OURS, "nodenetworks") for verb in ("create", "patch", "update")),
    *((EXTENDER, verb, OURS, "jobnetworks") for verb in ("update", "deletecollection")),
    *((EXTENDER, verb, MULTUS, "network-attachment-definitions") for verb in ("get", "update")),
    (EXTENDER, "list", "", "secrets"),
]


async def test_neither_has_a_right_on_what_is_the_others_or_nobodys(
    audited: AuditedPlane,
) -> None:
    async with installed(audited.plane) as api:
        assert [each for each in REFUSED if await is_allowed(api, *each)] == []
        assert await is_allowed(api, AGENT, "patch", OURS, "nodenetworks")  # it is a real question


async def test_whoever_is_bound_to_the_reader_may_see_all_networks_and_change_none(
    audited: AuditedPlane,
) -> None:
    async with installed(audited.plane) as api:
        await api.create(BINDINGS, BOUND)
        kinds = [(OURS, kind) for kind in ("vnipools", "jobnetworks", "nodenetworks")]

        async def may(verb: str) -> list[bool]:
            return [await is_allowed(api, "anna", verb, *kind) for kind in kinds]

        async def bound() -> bool:
            return await may("list") == [True] * 3

        await until(bound)  # the authorizer hears of it by a watch
        for verb in ("create", "patch", "delete"):
            assert await may(verb) == [False] * 3
        await api.delete(f"{BINDINGS}/anna", grace_s=None)
