"""A user's own plan, where the webhook is not asked: the API server itself refuses it.

::

    namespace opted out ──┐
    spec.nodeName set ────┼──► no webhook is called ──► ValidatingAdmissionPolicy muster-plans
    body of 7.8 MiB ──────┴──► is within the webhook's limit now
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.machine.patience import PATIENCE_S
from support.pods.webhookpods import PODS, pod

from loadtest.testbed.client.api import STRATEGIC_PATCH, Api, ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

POLICY = Path(__file__).parents[3] / "manifests" / "base" / "admission.yaml"
OUTSIDE = "/api/v1/namespaces/outside/pods"
FORGED = {names.PLAN: '{"id":"mine","node":"n1"}'}
BY_ITSELF = "ValidatingAdmissionPolicy 'muster-plans'"  # the webhook's own refusal reads otherwise


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outside(plane: ControlPlane, webhook: str) -> AsyncIterator[Api]:
    """A namespace that opted out, and the policy in force."""
    assert webhook.startswith("https://")
    await plane.apply(POLICY)
    async with plane.api() as api:
        labels = {"muster.dev/managed": "false"}
        await api.create("/api/v1/namespaces", {"metadata": {"name": "outside", "labels": labels}})
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await api.create(f"{OUTSIDE}?dryRun=All", pod(annotations=FORGED))
                except ApiFailed as refused:
                    if BY_ITSELF in str(refused):
                        break
                await asyncio.sleep(0.2)
        yield api


async def test_a_plan_is_refused_in_a_namespace_that_opted_out(outside: Api) -> None:
    with pytest.raises(ApiFailed, match=BY_ITSELF):
        await outside.create(OUTSIDE, pod(gpus=8, annotations=FORGED))


async def test_a_plan_is_not_added_there_later_either(outside: Api) -> None:
    made = await outside.create(OUTSIDE, pod(gpus=8))
    path = f"{OUTSIDE}/{made['metadata']['name']}"
    with pytest.raises(ApiFailed, match=BY_ITSELF):
        await outside.patch(path, {"metadata": {"annotations": FORGED}}, kind=STRATEGIC_PATCH)
    await outside.patch(path, {"metadata": {"labels": {"a": "b"}}}, kind=STRATEGIC_PATCH)


async def test_a_plan_is_refused_on_a_pod_that_names_its_node(outside: Api) -> None:
    with pytest.raises(ApiFailed, match=BY_ITSELF):
        await outside.create(PODS, pod(gpus=8, nodeName="n1", annotations=FORGED))


async def test_pods_without_a_plan_pass(outside: Api) -> None:
    await outside.create(OUTSIDE, pod(gpus=8))
    await outside.create(PODS, pod(nodeName="n1"))


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_plan_is_refused_in_a_body_that_escaping_makes_six_times_as_long(
    outside: Api,
) -> None:
    big = pod(gpus=8, annotations=FORGED)
    big["spec"]["containers"][0]["args"] = ["<" * 1_300_000]
    with pytest.raises(ApiFailed, match=r"muster\.dev/plan"):
        await outside.create(PODS, big)
