"""`muster ungate` on the real API server: the way out that strands no pod."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from cli.ops.ungating import Choice, Done, ungate
from kube import auth
from kube.names import PLAN_GATE
from loadtest.api import Api
from loadtest.assets import MINORS
from loadtest.controlplane import ControlPlane, Options
from loadtest.muster import RBAC, Muster
from loadtest.nodes import create_all
from loadtest.pods import pod

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MINORS)
async def plane(request: pytest.FixtureRequest) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(Options(minor=request.param, rbac=RBAC)) as plane:
        yield plane


@pytest_asyncio.fixture(loop_scope="module")
async def api(plane: ControlPlane) -> AsyncIterator[Api]:
    async with plane.api() as api:
        yield api
        await api.delete(PODS)


def gated(name: str, *others: str) -> JSON:
    made = pod(name, gpus=1)
    made["spec"]["schedulingGates"] = [{"name": gate} for gate in (PLAN_GATE, *others)]
    return made


async def run(plane: ControlPlane, *pods: str, user: str = "admin", dry_run: bool = False) -> Done:
    return await ungate(auth.load(plane.kubeconfig(user)), Choice(pods, dry_run=dry_run))


async def gates(api: Api) -> dict[str, list[str]]:
    items, _ = await api.list_all(PODS)
    return {
        p["metadata"]["name"]: [g["name"] for g in p["spec"].get("schedulingGates", [])]
        for p in items
    }


async def test_every_gate_of_muster_is_lifted_and_no_other(plane: ControlPlane, api: Api) -> None:
    await create_all(api, PODS, [gated(f"p{i}") for i in range(40)])
    await api.create(PODS, gated("kueue", "kueue.x-k8s.io/admission"))
    done = await run(plane)
    assert (len(done.ungated), done.refusals) == (41, [])
    assert done.schedulers == {"default-scheduler": 41}
    left = await gates(api)
    assert left.pop("kueue") == ["kueue.x-k8s.io/admission"]
    assert set(map(tuple, left.values())) == {()}


async def test_only_the_pods_that_are_named_are_ungated(plane: ControlPlane, api: Api) -> None:
    await create_all(api, PODS, [gated("one"), gated("two")])
    done = await run(plane, "default/one")
    assert done.ungated == ["default/one"]
    assert await gates(api) == {"one": [], "two": [PLAN_GATE]}


async def test_a_dry_run_only_tells(plane: ControlPlane, api: Api) -> None:
    await api.create(PODS, gated("one"))
    assert (await run(plane, dry_run=True)).figures()["would ungate"] == ["default/one"]
    assert await gates(api) == {"one": [PLAN_GATE]}


async def test_who_may_not_is_refused_pod_by_pod_and_nothing_is_claimed(
    plane: ControlPlane, api: Api
) -> None:
    """muster-webhook may not even list pods: that is an error; the extender may patch them."""
    await api.create(PODS, gated("one"))
    done = await run(plane, user="muster-extender")
    assert done.ungated == ["default/one"]


async def test_a_dead_webhook_does_not_keep_pods_gated_for_good(
    plane: ControlPlane, api: Api
) -> None:
    """The guard of gates fails closed: first it is refused with the remedy, then it works."""
    muster = Muster(plane)
    await muster.start(muster.webhook)
    try:
        await api.create(PODS, pod("one", gpus=1))
        assert await gates(api) == {"one": [PLAN_GATE]}
        muster.webhook.kill()
        done = await run(plane)
        assert done.webhook_gates
        [refusal] = done.refusals
        assert "kubectl delete validatingwebhookconfiguration muster-webhook" in refusal
    finally:
        await muster._unregister()
    assert (await run(plane)).ungated == ["default/one"]
    assert await gates(api) == {"one": []}
