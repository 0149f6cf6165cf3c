"""A real control plane that serves Muster's queues, one for all tests of a module."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from support.extenders.realcluster import until
from support.machine import quickyaml

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES: Final = "/apis/muster.dev/v1alpha1/queues"
DEFINITION: Final = Path(__file__).parents[3] / "manifests" / "crds" / "queues.yaml"


@asynccontextmanager
async def queue_plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """Start a control plane, and wait until it serves queues."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            await api.create(CRDS, quickyaml.load(DEFINITION.read_text(encoding="utf-8")))
            await until(lambda: serves(api, QUEUES))
        yield it


async def serves(api: Api, *paths: str) -> bool:
    """Whether the API server answers lists at paths."""
    try:
        for path in paths:
            await api.get(path)
    except ApiFailed:
        return False
    return True
