"""One control plane for all integration tests of the main path; each test empties it again."""

from collections.abc import AsyncIterator

import pytest_asyncio

from loadtest.controlplane import ControlPlane, Options
from loadtest.muster import RBAC


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_plane() -> AsyncIterator[ControlPlane]:
    """etcd and kube-apiserver with Muster's shipped RBAC; kube-scheduler is each test's own."""
    async with ControlPlane(Options(rbac=RBAC)) as plane:
        yield plane
