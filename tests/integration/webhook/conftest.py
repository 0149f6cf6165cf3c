"""A control plane of a minor with the webhook as a program in front, per module."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.pods.webhookpods import CONFIG, until_gated, write
from support.webhooks.webhookprocess import grant, running

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(Options(minor=minor)) as plane:
        await grant(plane)
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def webhook(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[str]:
    config = write(tmp_path_factory.mktemp("webhook"), CONFIG)
    async with running(config, "--kubeconfig", str(plane.kubeconfig("muster-webhook"))) as url:
        async with plane.api() as api:
            await until_gated(api)
        yield url


@pytest_asyncio.fixture(loop_scope="module")
async def api(plane: ControlPlane, webhook: str) -> AsyncIterator[Api]:
    assert webhook.startswith("https://")
    async with plane.api() as api:
        yield api
