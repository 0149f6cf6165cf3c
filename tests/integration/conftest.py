"""One control plane of a minor for most tests here; each test empties it again.

They stay up until the end, so that tests may come in any order on any worker.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest_asyncio
from support.apiservers import minors

from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytest_generate_tests = minors.pytest_generate_tests
minor = minors.minor


class Planes:
    """The control planes of this worker, each started when it is first asked for."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack
        self._running: dict[Minor, ControlPlane] = {}

    async def of(self, minor: Minor) -> ControlPlane:
        if minor not in self._running:
            plane = ControlPlane(Options(minor=minor, rbac=RBAC))
            self._running[minor] = await self._stack.enter_async_context(plane)
        return self._running[minor]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def planes() -> AsyncIterator[Planes]:
    async with AsyncExitStack() as stack:
        yield Planes(stack)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_plane(planes: Planes, minor: Minor) -> ControlPlane:
    """etcd and kube-apiserver with Muster's shipped RBAC; kube-scheduler is each test's own."""
    return await planes.of(minor)
