"""The component of isolated networks on a real control plane, as it is shipped."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.dialects.customkinds import is_served
from support.extenders.realcluster import JSON, PODS, until
from support.machine import quickyaml
from support.networks.jobnetworks import (
    ANNOTATION,
    ATTACHMENTS,
    COMPONENT,
    CRDS,
    NETWORKS,
    NODES,
    POOLS,
    definitions,
)

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane, collection


@asynccontextmanager
async def installed(plane: ControlPlane, without: str = "") -> AsyncIterator[Api]:
    """Install the component as it is shipped, and take it away again with all there is of it.

    ``without``: a kind, by its plural, that a test installs itself.
    """
    files = ("admission.yaml", "agent.yaml", "reader.yaml")
    shipped = [obj for file in files for obj in quickyaml.load_all((COMPONENT / file).read_text())]
    kinds = definitions()
    async with plane.api() as api:
        for definition in kinds:
            if definition["spec"]["names"]["plural"] != without:
                await api.create(f"{CRDS}?fieldValidation=Strict", definition)
        for path in (POOLS, NETWORKS, NODES, ATTACHMENTS):
            if path.rpartition("/")[2] != without:
                await until(lambda path=path: is_served(api, path))  # type: ignore[misc]
        for obj in shipped:
            await api.create(f"{collection(obj)}?fieldValidation=Strict", obj)
        await until(lambda: _is_enforced(api))
        try:
            yield api
        finally:
            for obj in reversed(shipped):
                await api.delete(f"{collection(obj)}/{obj['metadata']['name']}", grace_s=None)
            for network in (await api.get(NETWORKS))["items"]:
                path = f"{NETWORKS}/{network['metadata']['name']}"
                await api.patch(path, {"metadata": {"finalizers": None}})
            for definition in kinds:
                path = f"{CRDS}/{definition['metadata']['name']}"
                await api.delete(path, grace_s=None)
                await until(lambda path=path: _is_gone(api, path))  # type: ignore[misc]


async def _is_gone(api: Api, path: str) -> bool:
    return not await is_served(api, path)


def stranger() -> JSON:
    """Return a pod that wants to be in somebody's network."""
    return pods.pod("stranger", annotations={ANNOTATION: "muster-vni-1000"})


async def _is_enforced(api: Api) -> bool:
    """Policies are compiled some time after they are made."""
    try:
        await api.create(f"{PODS}?dryRun=All", stranger())
    except ApiFailed as refused:
        return "by Muster alone" in str(refused)
    return False
