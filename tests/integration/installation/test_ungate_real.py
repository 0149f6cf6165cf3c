"""`muster ungate` on the real API server: the way out that strands no pod."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.extenders.realcluster import cluster

from loadtest.testbed.client.api import Api
from loadtest.testbed.client.nodes import create_all
from loadtest.testbed.client.pods import Gang, pod
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane
from loadtest.testbed.deployment.muster import Muster
from muster.cli.ops import ungating
from muster.cli.ops.ungating import Done, PodChoice, ungate
from muster.kube.client import KubeClient
from muster.kube.errors import Forbidden
from muster.kube.http import auth
from muster.kube.names import PLAN_GATE
from muster.kube.wire import Pod

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

JSON = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@pytest_asyncio.fixture(loop_scope="session")
async def api(real_plane: ControlPlane) -> AsyncIterator[Api]:
    async with real_plane.api() as api:
        yield api
        await api.delete(PODS)


def gated(name: str, *others: str) -> JSON:
    made = pod(name, gpus=1)
    made["spec"]["schedulingGates"] = [{"name": gate} for gate in (PLAN_GATE, *others)]
    return made


async def run(plane: ControlPlane, *pods: str, user: str = "admin", dry_run: bool = False) -> Done:
    return await ungate(auth.load(plane.kubeconfig(user)), PodChoice(pods, dry_run=dry_run))


async def gates(api: Api) -> dict[str, list[str]]:
    items, _ = await api.list_all(PODS)
    return {
        p["metadata"]["name"]: [g["name"] for g in p["spec"].get("schedulingGates", [])]
        for p in items
    }


async def test_every_gate_of_muster_is_lifted_and_no_other(
    real_plane: ControlPlane, api: Api
) -> None:
    await create_all(api, PODS, [gated(f"p{i}") for i in range(40)])
    await api.create(PODS, gated("kueue", "kueue.x-k8s.io/admission"))
    done = await run(real_plane)
    assert (len(done.ungated), done.refusals) == (41, [])
    assert done.schedulers == {"default-scheduler": 41}
    left = await gates(api)
    assert left.pop("kueue") == ["kueue.x-k8s.io/admission"]
    assert set(map(tuple, left.values())) == {()}


async def test_only_the_pods_that_are_named_are_ungated(real_plane: ControlPlane, api: Api) -> None:
    await create_all(api, PODS, [gated("one"), gated("two")])
    done = await run(real_plane, "default/one")
    assert done.ungated == ["default/one"]
    assert await gates(api) == {"one": [], "two": [PLAN_GATE]}


async def test_a_dry_run_only_tells(real_plane: ControlPlane, api: Api) -> None:
    await api.create(PODS, gated("one"))
    assert (await run(real_plane, dry_run=True)).figures()["would ungate"] == ["default/one"]
    assert await gates(api) == {"one": [PLAN_GATE]}


async def test_who_may_not_list_pods_gets_an_error_and_nothing_is_claimed(
    real_plane: ControlPlane, api: Api
) -> None:
    await api.create(PODS, gated("one"))
    with pytest.raises(Forbidden):
        await run(real_plane, user="user")
    assert await gates(api) == {"one": [PLAN_GATE]}


async def test_a_pod_that_is_gone_meanwhile_is_no_failure(
    real_plane: ControlPlane, api: Api
) -> None:
    await api.create(PODS, gated("one"))
    seen = await _gated(real_plane)
    await api.delete(f"{PODS}/one")
    await api.create(PODS, gated("one"))  # the same name, another pod
    done = Done()
    async with KubeClient(auth.load(real_plane.kubeconfig())) as client:
        await ungating._lift_all(client, seen, done)
    assert (done.gone, done.ungated) == (1, [])
    assert await gates(api) == {"one": [PLAN_GATE]}


async def _gated(plane: ControlPlane) -> list[Pod]:
    async with KubeClient(auth.load(plane.kubeconfig())) as client:
        return await ungating._gated(client, PodChoice())


async def test_a_dead_webhook_does_not_keep_pods_gated_for_good(
    real_plane: ControlPlane, api: Api
) -> None:
    """The guard of gates fails closed: first it is refused with the remedy, then it works."""
    muster = Muster(real_plane)
    await muster.start(muster.webhook)
    try:
        await api.create(PODS, pod("one", gpus=1))
        assert await gates(api) == {"one": [PLAN_GATE]}
        muster.webhook.kill()
        done = await run(real_plane)
        assert done.webhook_gates
        [refusal] = done.refusals
        assert "kubectl delete validatingwebhookconfiguration muster-webhook" in refusal
    finally:
        await muster._unregister()
    assert (await run(real_plane)).ungated == ["default/one"]
    assert await gates(api) == {"one": []}


async def test_after_the_steps_of_the_runbook_the_bare_scheduler_places_every_pod(
    real_plane: ControlPlane,
) -> None:
    """One rack of 4 hosts; a gang of 4 runs, one of 8 waits gated. Muster goes; nobody is stuck.

    The waiting gang is placed pod by pod as room appears: that is what no gang scheduler means.
    """
    runs, waits = Gang("runs", 4), Gang("waits", 8)
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0], hosts=4)
        await fleet.submit(runs)
        await fleet.bound(runs)
        await fleet.submit(waits)
        await fleet.stays_unbound(waits)
        # docs/runbooks/uninstall.md, in its order.
        await fleet.muster._unregister()
        await fleet.muster.extender.stop()
        done = await run(real_plane)
        assert (len(done.ungated), done.refusals, done.webhook_gates) == (8, [], False)
        bare = schedulerconfig.write(
            "bare", directory=real_plane.directory, kubeconfig=real_plane.kubeconfig(SCHEDULER)
        )
        await real_plane.start_scheduler(bare)
        await fleet.add_racks([1], hosts=8)
        await fleet.bound(waits)
        assert len(await fleet.placement(runs)) == 4
