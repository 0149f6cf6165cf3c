"""What an operator says about resources: one section of the plugin's configuration.

The words are those of the plugins that people come from: ``sharing`` as in NVIDIA's
(NVIDIA/k8s-device-plugin README, "Shared Access to GPUs"), ``rdma`` as in the configList of
Mellanox/k8s-rdma-shared-dev-plugin. Each value that makes no sense is told with its field.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from deviceplugin.resources import names

MigStrategy = Literal["none", "single", "mixed"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Hex4 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}$")]


class SharingStruct(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Base of the structs; carries the encoding rules only."""


class SharingRule(SharingStruct, frozen=True):
    """How devices of one resource are shared out: each as so many ``replicas``.

    ``devices``: "all", the first so many, or a list of indices ("0"), MIG indices ("0:1", the
    second instance of GPU 0) and UUIDs. ``models``: beginnings of products' names; only those.
    """

    name: str
    replicas: Positive
    rename: str = ""
    devices: Literal["all"] | Positive | tuple[int | str, ...] = "all"
    models: tuple[str, ...] = ()


class SharingSettings(SharingStruct, frozen=True):
    """Rules of one way to share. ``fail_requests_greater_than_one``: by default with MPS only."""

    resources: tuple[SharingRule, ...]
    rename_by_default: bool = False
    fail_requests_greater_than_one: bool | None = None


class SharingWays(SharingStruct, frozen=True):
    """The ways to share GPUs and MIG instances; one at a time on a node."""

    time_slicing: SharingSettings | None = None
    mps: SharingSettings | None = None


class MemorySlices(SharingStruct, frozen=True):
    """GPUs shown as units of memory, of so many GiB each, under one name.

    The planner reads several systems' names for memory; ``aliyun.com/gpu-mem`` is one in GiB.
    """

    resource: str
    unit_gib: Positive = msgspec.field(name="unitGiB", default=1)
    devices: Literal["all"] | Positive | tuple[int | str, ...] = "all"
    models: tuple[str, ...] = ()


class Selectors(SharingStruct, frozen=True):
    """Which NICs: any of the values of a selector, and every selector that is there.

    ``link_types``: "ether" or "infiniband". ``names`` of verbs devices, ``pci_addresses`` and
    ``virtual`` (SR-IOV functions, or none of them) are Muster's own.
    """

    vendors: tuple[Hex4, ...] = ()
    device_ids: tuple[Hex4, ...] = msgspec.field(name="deviceIDs", default=())
    drivers: tuple[str, ...] = ()
    if_names: tuple[str, ...] = ()
    link_types: tuple[Literal["ether", "infiniband"], ...] = ()
    names: tuple[str, ...] = ()
    pci_addresses: tuple[str, ...] = ()
    virtual: bool | None = None


class NicPool(SharingStruct, frozen=True):
    """A resource of NICs. ``devices`` are interfaces, as ``selectors.ifNames``.

    With ``rdma_hca_max`` the pool is shared: there are so many ids, and whoever has one may use
    every NIC of the pool (``grants: pool``), as with the plugin whose words these are, or one of
    them (``grants: nic``; the ids are divided among the NICs). Without it each NIC is one id.
    """

    resource_name: str
    resource_prefix: str = "rdma"
    rdma_hca_max: Annotated[int, msgspec.Meta(ge=0)] = 0
    grants: Literal["pool", "nic"] = "pool"
    selectors: Selectors = Selectors()
    devices: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """Return the full name."""
        return f"{self.resource_prefix}/{self.resource_name}"


class ResourceSettings(SharingStruct, frozen=True):
    """``amd_naming``: "mixed" names AMD's GPUs by their partition (``amd.com/cpx_nps4``)."""

    mig_strategy: MigStrategy = "none"
    amd_naming: Literal["single", "mixed"] = "single"
    sharing: SharingWays = SharingWays()
    memory: tuple[MemorySlices, ...] = ()
    rdma: tuple[NicPool, ...] = ()


# --- what makes no sense ------------------------------------------------------------------


def problems(settings: ResourceSettings) -> Iterator[str]:
    """Yield a line for each thing that makes no sense: field, value, what is allowed."""
    ways = settings.sharing
    if ways.time_slicing is not None and ways.mps is not None:
        yield "sharing: timeSlicing and mps are both there; a node shares in one way, leave one out"
    yield from _of_sharing("sharing.timeSlicing", ways.time_slicing)
    yield from _of_sharing("sharing.mps", ways.mps)
    for index, memory in enumerate(settings.memory):
        yield from _named(f"memory[{index}].resource", memory.resource)
    for index, pool in enumerate(settings.rdma):
        yield from _named(f"rdma[{index}].resourceName", pool.resource)
    yield from _twice("rdma: resourceName", [pool.resource for pool in settings.rdma])


def _of_sharing(where: str, sharing: SharingSettings | None) -> Iterator[str]:
    if sharing is None:
        return
    if not sharing.resources:
        yield f"{where}.resources: is empty; name a resource and its replicas"
    for index, rule in enumerate(sharing.resources):
        here = f"{where}.resources[{index}]"
        yield from _named(f"{here}.name", names.full(rule.name))
        if rule.rename:
            yield from _named(f"{here}.rename", names.full(rule.rename))
        if rule.devices == ():
            yield f"{here}.devices: is empty; leave it out for all, or name some"


def _named(where: str, name: str) -> Iterator[str]:
    problem = names.problem(name)
    if problem:
        yield f"{where}: {name!r} {problem}"


def _twice(where: str, values: list[str]) -> Iterator[str]:
    for value in sorted({value for value in values if values.count(value) > 1}):
        yield f"{where}: {value} is there twice"
