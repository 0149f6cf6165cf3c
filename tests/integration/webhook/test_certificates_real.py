"""The authority of the webhook's certificates, kept in a Secret of a real API server."""

import asyncio
import base64
import ssl
from pathlib import Path

import pytest
from support.machine.patience import PATIENCE_S
from support.pods.webhookpods import CONFIG, HOOKS, PLAN, dry_run, gates, pod, until_gated, write
from support.webhooks.webhookprocess import running

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.controlplane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# Two thirds of 12 s over: staged at 8 s, in use at 10 s at the earliest; leaves live 6 s.
IMPATIENT = {
    "source": "secret",
    "authoritySeconds": 12,
    "leafSeconds": 6,
    "settleSeconds": 2,
    "checkSeconds": 0.2,
}


async def test_two_replicas_share_one_authority(
    plane: ControlPlane, api: Api, webhook: str, tmp_path: Path
) -> None:
    config = write(tmp_path, CONFIG | {"registration": {}})
    secret = "/api/v1/namespaces/muster-system/secrets/muster-webhook-authority"
    before = (await api.get(secret))["data"]
    async with running(config, "--kubeconfig", str(plane.kubeconfig("muster-webhook"))) as second:
        assert await issuer(second, before) == await issuer(webhook, before)
    assert (await api.get(secret))["data"] == before


@pytest.mark.slow
async def test_no_pod_slips_past_while_authorities_rotate_under_load(
    plane: ControlPlane, api: Api, tmp_path: Path
) -> None:
    """Authorities live 12 s here; the load goes on until the third one signs."""
    made = IMPATIENT | {"name": "impatient-authority"}
    registration = {"name": "impatient", "create": True, "url": "auto"}
    managed = {"accelerators": ["impatient.example/npu"]}
    config = write(tmp_path, CONFIG | {"certificates": made, "registration": registration,
                                       "managed": managed})  # fmt: skip
    secret = "/api/v1/namespaces/muster-system/secrets/impatient-authority"
    async with running(config, "--kubeconfig", str(plane.kubeconfig("muster-webhook"))) as url:
        await until_gated(api, "impatient.example/npu")
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            stop = asyncio.Event()
            loads = [group.create_task(load(api, stop)) for _ in range(4)]
            issuers: set[bytes] = set()
            while len(issuers) < 3:
                issuers.add(await issuer(url, (await api.get(secret))["data"]))
                await asyncio.sleep(0.2)
            stop.set()
        for kind in ("mutating", "validating"):
            await api.delete(f"{HOOKS}/{kind}webhookconfigurations/impatient")
    reviews = [review for task in loads for review in task.result()]
    assert len(reviews) > 100
    assert set(reviews) == {(PLAN,)}


async def load(api: Api, stop: asyncio.Event) -> list[tuple[str, ...]]:
    """Create pods that only the impatient webhook gates; return the gates each came out with."""
    seen = []
    while not stop.is_set():
        seen.append(tuple(gates(await dry_run(api, pod(gpus=1, resource="impatient.example/npu")))))
    return seen


async def issuer(url: str, secret: dict[str, str]) -> bytes:
    """Return the authority key id of the certificate that a new connection gets."""
    from cryptography import x509  # noqa: PLC0415 - only this helper looks inside certificates

    context = ssl.create_default_context(cadata=base64.b64decode(secret["ca.crt"]).decode())
    host, _, port = url.removeprefix("https://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    data = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    identifier = x509.load_der_x509_certificate(data).extensions.get_extension_for_class(
        x509.AuthorityKeyIdentifier
    )
    return identifier.value.key_identifier or b""
