"""Pods that try to escape being planned, against the whole of Muster on a real control plane.

::

    rack r0 ── r0-h00 … r0-h03      hosts of 8 GPUs
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from support.extenders.realcluster import PODS, Cluster, cluster, until

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON, STRATEGIC_PATCH, ApiFailed
from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

POLICY = Path(__file__).parents[3] / "manifests" / "base" / "admission.yaml"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
DAEMONSETS = "/apis/apps/v1/namespaces/default/daemonsets"
HOSTS = 4
DIGITS = "9" * 4_301  # one more than Python's int() takes
UNREADABLE = {"volcano.sh/network-topology-highest-tier": DIGITS}
ESCAPES = "\x1b[2Jtrain\x1b[31m"


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(real_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Muster and kube-scheduler as recommended; judged at the end."""
    async with cluster(real_plane) as it:
        await it.add_racks(range(1), hosts=HOSTS)
        yield it


def owned_by(api_version: str, name: str, **spec: object) -> JSON:
    pod: JSON = pods.pod(name, gpus=8)
    owner = {
        "apiVersion": api_version, "kind": "DaemonSet", "name": "fake", "controller": True,
        "uid": "11111111-2222-3333-4444-555555555555",
    }  # fmt: skip
    pod["metadata"]["ownerReferences"] = [owner]
    pod["spec"] |= spec
    return pod


def is_gated(pod: JSON) -> bool:
    return {"name": names.PLAN_GATE} in pod["spec"].get("schedulingGates", [])


async def test_a_pod_that_cannot_be_read_is_gated_or_refused_and_takes_its_room_on_a_node(
    fleet: Cluster,
) -> None:
    pending = pods.pod("pending", gpus=8, annotations=UNREADABLE)
    assert await is_held_up(fleet, pending)
    await fleet.api.delete(f"{PODS}/pending")
    bound = pods.pod("bound", gpus=8, annotations=UNREADABLE)
    bound["spec"]["nodeName"] = "r0-h00"
    await fleet.api.create(PODS, bound)
    large, small = pods.Gang("large", HOSTS), pods.Gang("small", HOSTS - 1)
    await fleet.submit(large)
    await fleet.submit(small)
    await fleet.bound(small)
    await fleet.stays_unbound(large)
    assert "r0-h00" not in (await fleet.placement(small)).values()


async def is_held_up(fleet: Cluster, pod: JSON) -> bool:
    """Create a pod; return whether it is gated, or refused with what cannot be read."""
    try:
        return is_gated(await fleet.api.create(PODS, pod))
    except ApiFailed as refused:
        return all(key in str(refused) for key in UNREADABLE)


@pytest.mark.parametrize("api_version", ["example.com/v1", "apps/v1"])
async def test_an_owner_that_a_user_wrote_is_no_excuse_while_the_webhook_answers(
    fleet: Cluster, api_version: str
) -> None:
    assert is_gated(await fleet.api.create(PODS, owned_by(api_version, "fake")))


async def test_an_owner_that_a_user_wrote_is_refused_while_nobody_answers(fleet: Cluster) -> None:
    """Pods that the DaemonSet controller makes pass, and so does what asks for no accelerator."""
    await fleet.plane.apply(POLICY)
    fleet.muster.webhook.kill()

    async def is_refused() -> bool:
        try:
            await fleet.api.create(f"{PODS}?dryRun=All", owned_by("apps/v1", "fake"))
        except ApiFailed as refused:
            return "only the DaemonSet controller" in str(refused)
        return False

    try:
        await until(is_refused)
        await adding_one_is_refused(fleet)
        await fleet.plane.start_controllers("daemonset")
        await fleet.api.create(DAEMONSETS, daemonset())

        async def are_made() -> bool:
            found = await fleet.list_pods()
            return sum("ownerReferences" in pod["metadata"] for pod in found) == HOSTS

        await until(are_made)
    finally:
        await fleet.api.delete(DAEMONSETS)
        await fleet.plane.stop(CONTROLLERS)
        for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
            for name in ("muster-daemonsets", "muster-plans"):
                await fleet.api.delete(f"{ADMISSION}/{kind}/{name}")
        await fleet.muster.start(fleet.muster.webhook)


async def adding_one_is_refused(fleet: Cluster) -> None:
    """The pod came without an owner, which is in order."""
    plain = await fleet.api.create(PODS, pods.pod("plain", gpus=8))
    owners = {"ownerReferences": owned_by("apps/v1", "plain")["metadata"]["ownerReferences"]}
    path = f"{PODS}/{plain['metadata']['name']}"
    with pytest.raises(ApiFailed, match=r"only the DaemonSet controller|failed calling webhook"):
        await fleet.api.patch(path, {"metadata": owners}, kind=STRATEGIC_PATCH)


def daemonset() -> JSON:
    labels = {"app": "exporter"}
    container = {"name": "main", "image": "example.com/e", "resources": {"limits": {GPU: "1"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "exporter", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


async def test_a_groups_name_with_escapes_is_refused_and_shown_escaped_where_it_slipped_past(
    fleet: Cluster,
) -> None:
    named = {"scheduling.k8s.io/group-name": ESCAPES}
    with pytest.raises(ApiFailed, match="no object can have it") as refused:
        await fleet.api.create(PODS, pods.pod("named", gpus=8, annotations=named))
    assert "\x1b" not in str(refused.value)
    fleet.muster.webhook.kill()
    await fleet.api.create(PODS, pods.pod("named", gpus=8, annotations=named))
    await fleet.muster.start(fleet.muster.webhook)

    async def is_known() -> bool:
        return b"train" in await shown(fleet)

    await until(is_known)
    text = await shown(fleet)
    assert b"\x1b" not in text
    assert rb"\u001b[2Jtrain" in text


async def shown(fleet: Cluster) -> bytes:
    """Return what `muster gangs` prints."""
    command = [sys.executable, "-m", "muster.cli.main", "gangs"]
    process = await asyncio.create_subprocess_exec(
        *(*command, "--extender", fleet.muster.extender_url), stdout=asyncio.subprocess.PIPE
    )
    text, _ = await process.communicate()
    return text
