"""Two replicas and isolated networks: whatever befalls the leader, no VNI is given twice.

::

    rack r0 … r1    (16 hosts each, an agent's NodeNetwork for each)
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.extenders.realcluster import until
from support.extenders.replicas import PATIENCE_S, Audit, Replicated, replicated
from support.networks.jobnetworks import NETWORKS, POOLS, agent, isolated, pool, selections
from support.networks.networksinstalled import installed

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SHORT = {
    "leaseDurationSeconds": 8,
    "renewDeadlineSeconds": 5,
    "retryPeriodSeconds": 1,
    "writeTimeoutSeconds": 2,
}
GANGS = [isolated(f"g{number}", 2) for number in range(12)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(audit: Audit, minor: Minor) -> AsyncIterator[ControlPlane]:
    options = Options(minor=minor, rbac=RBAC, api_server_flags=audit.flags)
    async with ControlPlane(options) as running:
        yield running


async def given(it: Replicated) -> dict[int, str]:
    """Return VNI → gang."""
    found = (await it.api.get(NETWORKS))["items"]
    return {each["spec"]["vni"]: each["spec"]["gang"].rpartition("/")[2] for each in found}


async def carried(it: Replicated, gang: pods.Gang) -> set[str]:
    """Return the networks that a gang's pods name."""
    return {selections(pod)[-1]["name"] for pod in await it.list_pods(gang)}


@pytest.mark.parametrize("fate", ["killed", "stopped"])
async def test_a_leader_that_is_lost_while_it_gives_networks_is_followed_and_none_is_double(
    plane: ControlPlane, audit: Audit, fate: str
) -> None:
    async with installed(plane) as api:
        await api.create(POOLS, pool("jobs", 1000, 1000 + len(GANGS) - 1))
        async with replicated(plane, audit, SHORT, releaseConcurrency=1) as it:
            await it.add_racks(range(2))
            for number in range(32):
                await agent(api, f"r{number // 16}-h{number % 16:02d}", number)
            leader = await it.leader()
            async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
                group.create_task(it.submit_at_once(GANGS))
                while len(await given(it)) < 3:  # noqa: ASYNC110  asked over HTTP
                    await asyncio.sleep(0.01)
            old = await it.holder()
            if fate == "killed":
                leader.program.kill()
            else:
                leader.program.suspend()
            before = await given(it)
            await it.leader(but=leader)
            await it.bound(*GANGS)
            after = await given(it)
            assert before.items() <= after.items()
            assert sorted(after.values()) == sorted(gang.name for gang in GANGS)
            for vni, name in after.items():
                [gang] = [each for each in GANGS if each.name == name]
                assert await carried(it, gang) == {f"muster-vni-{vni}"}
            if fate == "stopped":
                taken = it.taken(await it.holder())
                leader.program.resume()
                await leader.ended()
                assert [w for w in audit.writes() if w.identity == old and w.at > taken.at] == []
                assert await given(it) == after
            await it.clear()

            async def empty() -> bool:
                return not await given(it)

            await until(empty)
