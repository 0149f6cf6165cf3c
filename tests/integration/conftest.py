"""One control plane of each minor for the tests of the main path; each test empties it again."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from loadtest.assets import MINORS
from loadtest.controlplane import ControlPlane, Options
from loadtest.muster import RBAC


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=MINORS)
async def real_plane(request: pytest.FixtureRequest) -> AsyncIterator[ControlPlane]:
    """etcd and kube-apiserver with Muster's shipped RBAC; kube-scheduler is each test's own."""
    async with ControlPlane(Options(minor=request.param, rbac=RBAC)) as plane:
        yield plane
