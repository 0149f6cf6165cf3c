"""A real control plane with Kueue's kinds and some of its objects, and without Kueue."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from support.dialects.customkinds import install

from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta1"
_PATHS: Final = {
    "ResourceFlavor": "resourceflavors",
    "ClusterQueue": "clusterqueues",
    "LocalQueue": "namespaces/default/localqueues",
}


@asynccontextmanager
async def kueue_plane(
    minor: Minor, objects: Sequence[dict[str, Any]]
) -> AsyncIterator[ControlPlane]:
    """Start a control plane, and create the objects before Muster begins."""
    definitions = await asyncio.to_thread(crds.ensure)
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            await install(api, definitions, objects)
            for each in objects:
                await api.create(f"{KUEUE}/{_PATHS[each['kind']]}", each)
        yield it
