"""The operator's settings of resources: one section of the plugin's configuration.

Field names are those of plugins that operators know: ``sharing`` as in NVIDIA's
(NVIDIA/k8s-device-plugin README, "Shared Access to GPUs"), ``rdma`` as in the configList of
Mellanox/k8s-rdma-shared-dev-plugin. ``problems`` names each value that is not allowed.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from deviceplugin.resources import names

MigStrategy = Literal["none", "single", "mixed"]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Hex4 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}$")]
PartitionKey = Annotated[str, msgspec.Meta(pattern=r"^0[xX][0-9a-fA-F]{1,4}$")]


class SharingStruct(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Base of the structs; carries the encoding rules only."""


class SharingRule(SharingStruct, frozen=True):
    """Devices of one resource that are each shown as several replicas."""

    #: the resource
    name: str
    #: how often each device is shown
    replicas: Positive
    #: another resource name for the replicas; "" for none
    rename: str = ""
    #: "all", a number (the first so many), or a list of indices ("0"), MIG indices ("0:1": the
    #: second instance of GPU 0) and UUIDs
    devices: Literal["all"] | Positive | tuple[int | str, ...] = "all"
    #: beginnings of product names; empty: all products
    models: tuple[str, ...] = ()


class SharingSettings(SharingStruct, frozen=True):
    """The rules of one way to share."""

    resources: tuple[SharingRule, ...]
    #: whether replicas without ``rename`` get the suffix ".shared"
    rename_by_default: bool = False
    #: whether a container may have only one shared device; None: with MPS only
    fail_requests_greater_than_one: bool | None = None


class SharingWays(SharingStruct, frozen=True):
    """The ways to share GPUs and MIG instances; one at a time on a node."""

    time_slicing: SharingSettings | None = None
    mps: SharingSettings | None = None


class MemorySlices(SharingStruct, frozen=True):
    """GPUs that are shown as units of memory under one resource name.

    The planner reads several systems' names for memory; ``aliyun.com/gpu-mem`` is one in GiB.
    """

    resource: str
    #: GiB of one unit
    unit_gib: Positive = msgspec.field(name="unitGiB", default=1)
    #: as in ``SharingRule``
    devices: Literal["all"] | Positive | tuple[int | str, ...] = "all"
    #: beginnings of product names; empty: all products
    models: tuple[str, ...] = ()


class Selectors(SharingStruct, frozen=True):
    """Which NICs are in a pool: a NIC must match one value of every selector that is set."""

    #: PCI vendors, four hex digits
    vendors: tuple[Hex4, ...] = ()
    #: PCI devices, four hex digits
    device_ids: tuple[Hex4, ...] = msgspec.field(name="deviceIDs", default=())
    drivers: tuple[str, ...] = ()
    #: names of network interfaces
    if_names: tuple[str, ...] = ()
    link_types: tuple[Literal["ether", "infiniband"], ...] = ()
    #: names of verbs devices; this and the next two selectors are Muster's own
    names: tuple[str, ...] = ()
    pci_addresses: tuple[str, ...] = ()
    #: true: SR-IOV virtual functions only; false: none of them; None: both
    virtual: bool | None = None


class NicPool(SharingStruct, frozen=True):
    """A resource of NICs, shared by containers or one NIC to a container."""

    resource_name: str
    resource_prefix: str = "rdma"
    #: how many ids a shared pool has; 0: the pool is not shared and each NIC is one id
    rdma_hca_max: Annotated[int, msgspec.Meta(ge=0)] = 0
    #: what one id of a shared pool stands for: every NIC of the pool, as with Mellanox's plugin,
    #: or one NIC (the ids are divided among the NICs)
    grants: Literal["pool", "nic"] = "pool"
    selectors: Selectors = Selectors()
    #: names of network interfaces, as in ``selectors.ifNames``
    devices: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """Return the full name."""
        return f"{self.resource_prefix}/{self.resource_name}"


class RdmaFile(SharingStruct, frozen=True):
    """The whole file of Mellanox/k8s-rdma-shared-dev-plugin."""

    config_list: tuple[NicPool, ...] = ()
    #: seconds between two looks at the devices; has no effect, as changes are seen at once
    periodic_update_interval: int | None = None


class SriovSelectors(SharingStruct, frozen=True):
    """Which functions are in an SR-IOV pool: one must match every selector that is set.

    Field names are those of k8snetworkplumbingwg/sriov-network-device-plugin (pkg/types).
    """

    vendors: tuple[Hex4, ...] = ()
    devices: tuple[Hex4, ...] = ()
    drivers: tuple[str, ...] = ()
    pci_addresses: tuple[str, ...] = ()
    #: names of interfaces of physical functions, or regular expressions; "#1-3,5" behind one means
    #: those virtual functions of it
    pf_names: tuple[str, ...] = ()
    #: PCI addresses of physical functions, in the same form
    root_devices: tuple[str, ...] = ()
    link_types: tuple[Literal["ether", "infiniband"], ...] = ()
    #: names of functions by the firmware (sysfs' ``acpi_index``)
    acpi_indexes: tuple[str, ...] = ()
    #: InfiniBand partition keys, of which a port has one as its first ("0x8001")
    p_keys: tuple[PartitionKey, ...] = ()
    #: what the function's vDPA device is bound to; containers get the file of "vhost"
    vdpa_type: Literal["", "vhost", "virtio"] = ""
    #: packages on Intel's NICs; they cannot be read here, so ``problems`` refuses them
    ddp_profiles: tuple[str, ...] = ()
    #: whether containers get the RDMA device files
    is_rdma: bool = False
    #: whether containers get /dev/vhost-net and /dev/net/tun
    need_vhost_net: bool = False


class SriovPool(SharingStruct, frozen=True):
    """A resource of PCI functions, each for one container, with ids that are PCI addresses."""

    resource_name: str
    #: upstream's default (the flag ``--resource-prefix``)
    resource_prefix: str = "intel.com"
    device_type: Literal["netDevice"] = "netDevice"
    #: whether the kubelet is shown no NUMA nodes
    exclude_topology: bool = False
    #: PCI address, or "*" for all → what is added to ``PCIDEVICE_…_INFO``
    additional_info: dict[str, dict[str, str]] = {}
    #: one set of selectors, or several, of which a function matches one
    selectors: SriovSelectors | tuple[SriovSelectors, ...] = SriovSelectors()

    @property
    def resource(self) -> str:
        """Return the full name."""
        return f"{self.resource_prefix}/{self.resource_name}"

    @property
    def alternatives(self) -> tuple[SriovSelectors, ...]:
        """Return the sets of selectors."""
        found = self.selectors
        return (found,) if isinstance(found, SriovSelectors) else found


class SriovFile(SharingStruct, frozen=True):
    """The whole file of k8snetworkplumbingwg/sriov-network-device-plugin."""

    resource_list: tuple[SriovPool, ...] = ()


class ResourceSettings(SharingStruct, frozen=True):
    """The section ``resources``."""

    mig_strategy: MigStrategy = "none"
    #: "mixed" names AMD's GPUs by their partition (``amd.com/cpx_nps4``), "single" all alike
    amd_naming: Literal["single", "mixed"] = "single"
    sharing: SharingWays = SharingWays()
    memory: tuple[MemorySlices, ...] = ()
    #: pools of NICs, or the RDMA plugin's whole file
    rdma: tuple[NicPool, ...] | RdmaFile = ()
    #: pools of PCI functions, or the SR-IOV plugin's whole file
    sriov: tuple[SriovPool, ...] | SriovFile = ()

    @property
    def nic_pools(self) -> tuple[NicPool, ...]:
        """Return the pools of ``rdma``."""
        return self.rdma.config_list if isinstance(self.rdma, RdmaFile) else self.rdma

    @property
    def sriov_pools(self) -> tuple[SriovPool, ...]:
        """Return the pools of ``sriov``."""
        return self.sriov.resource_list if isinstance(self.sriov, SriovFile) else self.sriov


# --- what is not allowed ------------------------------------------------------------------


def problems(settings: ResourceSettings) -> Iterator[str]:
    """Yield a line for each value that is not allowed: field, value, what is allowed."""
    ways = settings.sharing
    if ways.time_slicing is not None and ways.mps is not None:
        yield "sharing: timeSlicing and mps are both there; a node shares in one way, leave one out"
    yield from _of_sharing("sharing.timeSlicing", ways.time_slicing)
    yield from _of_sharing("sharing.mps", ways.mps)
    for index, memory in enumerate(settings.memory):
        yield from _named(f"memory[{index}].resource", memory.resource)
    yield from _of_pools("rdma", settings.nic_pools)
    yield from _of_pools("sriov", settings.sriov_pools)
    for index, pool in enumerate(settings.sriov_pools):
        for selectors in pool.alternatives:
            yield from _of_selectors(f"sriov[{index}].selectors", selectors)


def _of_selectors(where: str, selectors: SriovSelectors) -> Iterator[str]:
    if selectors.ddp_profiles:
        yield (
            f"{where}.ddpProfiles: {', '.join(selectors.ddp_profiles)}: only devlink or Intel's "
            "ddptool tells the package of a NIC, and neither is here; select its functions by "
            "pfNames or rootDevices"
        )
    if selectors.is_rdma and selectors.vdpa_type:
        yield (
            f"{where}: isRdma and vdpaType are both there; a container gets a function in one "
            "way, leave one out"
        )


def _of_pools(where: str, pools: Sequence[NicPool | SriovPool]) -> Iterator[str]:
    for index, pool in enumerate(pools):
        yield from _named(f"{where}[{index}].resourceName", pool.resource)
    yield from _twice(f"{where}: resourceName", [pool.resource for pool in pools])


def without_effect(settings: ResourceSettings) -> Iterator[tuple[str, str]]:
    """Yield each field that is set and changes nothing, and why."""
    rdma = settings.rdma
    if isinstance(rdma, RdmaFile) and rdma.periodic_update_interval is not None:
        yield (
            "rdma.periodicUpdateInterval",
            "has no effect: changes of devices are seen at once; leave it out",
        )


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
