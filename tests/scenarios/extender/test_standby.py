"""A standby in this process, against a simulated API server, until the Lease is given up.

::

    Lease: held by "other" ──► released          rack r1 ── r1-0 r1-1
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from aiohttp.test_utils import TestClient, TestServer
from support.apiservers.apifaults import api_server
from support.extenders.extenders import PODS, World, eventually, plan_of, until

from extender.app import make_app
from extender.config.election import LeaderElection
from extender.config.settings import ExtenderConfig
from extender.leadership.candidacy import stand
from extender.leadership.ownpod import PodName
from extender.wiring.extender import Extender
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.pods import Gang
from muster.kube import names
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.http.transport import Transport

OWN = PodName("default", "muster-0")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
HELD = {
    "metadata": {"name": "muster-extender", "namespace": "default"},
    "spec": {"holderIdentity": "other", "leaseDurationSeconds": 3600, "leaseTransitions": 1},
}
ELECTION = LeaderElection(
    lease_duration_seconds=3600, renew_deadline_seconds=1800.0, retry_period_seconds=0.05
)


@dataclass(slots=True)
class Standby(World):
    async def release(self) -> None:
        lease = f"{LEASES}/muster-extender"
        await self.api.patch(lease, {"spec": {"holderIdentity": None}})


@asynccontextmanager
async def standby() -> AsyncIterator[Standby]:
    async with AsyncExitStack() as stack:
        server, url = await stack.enter_async_context(api_server())
        api = await stack.enter_async_context(Api(url))
        await api.create(LEASES, HELD)
        await api.create(PODS, _pod(OWN.name))
        config = ExtenderConfig(debounce_seconds=0.0, leader_election=ELECTION)
        candidacy = await stand(stack, ELECTION, auth.fixed(url), OWN)
        assert candidacy is not None
        writes = Transport(auth.fixed(url), fence=candidacy.fence)
        client = await stack.enter_async_context(KubeClient(auth.fixed(url), writes=writes))
        extender = Extender(config, client, candidacy=candidacy)
        http = await stack.enter_async_context(TestClient(TestServer(make_app(extender.parts))))
        await until(extender.sync.synced.is_set)
        yield Standby(api, server, extender, http)


def _pod(name: str, **labels: str) -> dict[str, object]:
    meta = {"name": name, "namespace": "default", "labels": labels}
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": meta, "spec": {"nodeName": "elsewhere", "containers": containers}}


async def test_a_standby_keeps_in_step_writes_nothing_and_forgets_what_is_gone() -> None:
    async with standby() as it:
        await it.nodes({"r1": 2})
        before = await it.gang(Gang("g", 2))
        gone = await it.gang(Gang("gone", 2))
        state, planner = it.extender.engine.state, it.extender.planner
        await until(lambda: len(list(state.gangs())) == 2)
        for pod in gone:
            await it.api.delete(f"{PODS}/{pod['metadata']['name']}")
        await until(lambda: len(list(state.gangs())) == 1)
        assert len(planner._list.todo) == 2
        planner.forget_gone()
        assert len(planner._list.todo) == 1
        for pod in before:
            assert await it.pod(pod["metadata"]["name"]) == pod
        assert not it.extender.begun.is_set()


async def test_a_broken_plan_is_noticed_and_left_to_the_leader_and_forgotten_when_mended() -> None:
    async with standby() as it:
        await it.nodes({"r1": 1})
        (pod,) = await it.gang(Gang("g", 1))
        repairer, state = it.extender.repairer, it.extender.engine.state
        released = await released_by_the_leader(it, pod["metadata"]["name"], "r1-0")
        await it.api.delete("/api/v1/nodes/r1-0")
        await until(lambda: len(repairer._troubles) == 1)
        assert await it.pod("g-0") == released
        await it.api.delete(f"{PODS}/g-0")
        await until(lambda: not list(state.gangs()))
        repairer.forget_mended()
        assert not repairer._troubles


async def released_by_the_leader(it: Standby, name: str, node: str) -> dict[str, object]:
    """Do what a leader elsewhere does, and wait until the standby knows."""
    note = f'{{"id":"p1","node":"{node}","gen":1}}'
    ungate = {
        "metadata": {"annotations": {names.PLAN: note}},
        "spec": {"schedulingGates": None},
    }
    released = await it.api.patch(f"{PODS}/{name}", ungate)
    state = it.extender.engine.state
    uid = state.find_pod("default", name)
    assert uid is not None
    await until(lambda: state.hold(uid) is not None)
    return released


async def test_when_the_lease_is_given_up_it_labels_itself_and_plans_what_waits() -> None:
    async with standby() as it:
        await it.nodes({"r1": 2})
        await it.gang(Gang("g", 2))
        await it.api.create(PODS, _pod("muster-1", **{names.LEADER: "muster-extender"}))
        await it.release()
        await it.released(["g-0", "g-1"])

        async def labels(name: str) -> str | None:
            return (await it.pod(name))["metadata"].get("labels", {}).get(names.LEADER)

        async def moved() -> bool:
            return await labels("muster-1") is None

        await eventually(moved)
        assert await labels(OWN.name) == "muster-extender"
        assert plan_of(await it.pod("g-0")) is not None


async def test_it_does_not_write_before_its_mark_has_come_back_through_the_watch() -> None:
    async with standby() as it:
        await it.nodes({"r1": 2})
        await it.gang(Gang("g", 2))
        mark = it.extender.candidacy.mark
        mark.pod = PodName("default", "nobody")  # so that it is never seen
        await it.release()
        await until(it.extender.leadership.elector.acquired.is_set)

        async def marked() -> bool:
            return names.TERM in (await it.pod(OWN.name))["metadata"].get("annotations", {})

        await eventually(marked)
        assert not it.extender.candidacy.fence.is_open()
        assert plan_of(await it.pod("g-0")) is None
