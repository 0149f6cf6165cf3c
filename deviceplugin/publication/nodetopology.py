"""The annotation ``muster.dev/node-topology``: a node's devices, as the planner reads them.

``muster.kube.translation.translate`` reads ``devices``. The rest is for people and tools:

=========  =====================================================================================
devices    each device by UUID (NICs by the name of their verbs device), with its resource, NUMA
           node, parent, health and why it is ill, memory, replicas, and the places of its MIG
           instances. ``resource`` is the one under which the kubelet is shown the device
links      linked pairs of GPUs: ``[one, other, links]``, by their numbers in ``devices``
paths      what lies above each device on PCIe, the host bridge first, by device number
nics       speed in Gbit/s and state of each NIC's ports
=========  =====================================================================================

A GPU that is cut lists its existing instances as places, and no others: a pod gets the instance
that its plan names (``GPU-…/3g.40gb@4``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import Final

import msgspec

from deviceplugin.model.inventory import Gpu, Inventory, MigInstance, Nic, PciPlace, Vendor
from deviceplugin.publication.gfd import product
from muster.kube.translation.translate import DeviceWire, PlacementWire

MOST_BYTES: Final = 64 * 1024
"""Annotations of an object are 256 KiB in all (apimachinery TotalAnnotationSizeLimitB)."""
_MEDIA: Final = 1 << 16
"""Above the memory slices: the one set of extra media engines, as workloads.devices.mig has it."""


class NicWire(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A NIC's ports: how many, how many of them up, and the speed of the fastest in Gbit/s."""

    name: str
    #: how many it has
    ports: int = 0
    #: how many of them are up
    active: int = 0
    #: speed of the fastest port
    gbps: int = 0
    #: link layer of the first port
    layer: str = ""


class Published(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The annotation. ``translate.NodeTopologyWire`` is the part of it that is read back."""

    devices: tuple[DeviceWire, ...] = ()
    #: (device number, device number, links) of linked pairs of GPUs
    links: tuple[tuple[int, int, int], ...] = ()
    #: the PCIe bridges above each device, by device number
    paths: tuple[tuple[str, ...], ...] = ()
    nics: tuple[NicWire, ...] = ()


@dataclass(frozen=True, slots=True)
class Offered:
    """How the devices are offered."""

    #: device → the resource it is shown under
    resources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    #: device → how many are shown of it, where that is not one
    replicas: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    #: device → why it is ill
    ill: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def annotation(inventory: Inventory, offered: Offered) -> str:
    """Return the annotation's text; without paths and links where it would be too long."""
    whole = _published(inventory, offered)
    text = msgspec.json.encode(whole)
    if len(text) > MOST_BYTES:
        text = msgspec.json.encode(msgspec.structs.replace(whole, links=(), paths=(), nics=()))
    return text.decode()


def _published(inventory: Inventory, offered: Offered) -> Published:
    nics = [nic for nic in inventory.nics if nic.name in offered.resources]
    places = [gpu.place for gpu in inventory.gpus] + [nic.place for nic in nics]
    parents = dict(zip((place.address for place in places), _parents(places), strict=True))
    driver = inventory.driver.version
    return Published(
        devices=(
            *(_gpu(gpu, parents[gpu.place.address], driver, offered) for gpu in inventory.gpus),
            *(_nic(nic, parents[nic.place.address], offered) for nic in nics),
        ),
        links=tuple(_links(inventory)),
        paths=tuple(place.path for place in places),
        nics=tuple(map(_ports, nics)),
    )


def _gpu(gpu: Gpu, parent: str, driver: str, offered: Offered) -> DeviceWire:
    cut = gpu.mig is not None and gpu.mig.enabled
    replicas = offered.replicas.get(gpu.uuid, 1)
    return DeviceWire(
        name=gpu.uuid,
        resource="" if cut else offered.resources.get(gpu.uuid, ""),
        driver=driver,
        kind="gpu-mig" if cut else "gpu",
        numa=gpu.place.numa,
        parent=parent,
        healthy=gpu.uuid not in offered.ill,
        reason=offered.ill.get(gpu.uuid, ""),
        counters=({"memory": gpu.memory_mib} if gpu.memory_mib else {})
        | ({"replicas": replicas} if replicas > 1 and not cut else {}),
        family="nvidia" if gpu.vendor is Vendor.NVIDIA else "amd",
        model=product(gpu),
        placements=_places(gpu.mig.instances, offered) if cut and gpu.mig else (),
    )


def _places(instances: Iterable[MigInstance], offered: Offered) -> tuple[PlacementWire, ...]:
    """Return the places of healthy instances, by profile."""
    found: dict[str, list[tuple[int, int]]] = {}
    for instance in instances:
        if instance.uuid not in offered.ill:
            found.setdefault(instance.profile, []).append((instance.start, _mask(instance)))
    return tuple(PlacementWire(name, tuple(sorted(masks))) for name, masks in sorted(found.items()))


def _mask(instance: MigInstance) -> int:
    bits = ((1 << instance.size) - 1) << instance.start
    return bits | _MEDIA if instance.profile.endswith("+me") else bits


def _nic(nic: Nic, parent: str, offered: Offered) -> DeviceWire:
    return DeviceWire(
        name=nic.name,
        resource=offered.resources[nic.name],
        kind="nic",
        numa=nic.place.numa,
        parent=parent,
        healthy=nic.name not in offered.ill,
        reason=offered.ill.get(nic.name, ""),
        model=nic.model,
    )


def _ports(nic: Nic) -> NicWire:
    return NicWire(
        name=nic.name,
        ports=len(nic.ports),
        active=sum(port.active for port in nic.ports),
        gbps=max((port.rate_gbps for port in nic.ports), default=0),
        layer=nic.ports[0].link_layer if nic.ports else "",
    )


def _links(inventory: Inventory) -> Iterable[tuple[int, int, int]]:
    for (one, first), (other, second) in combinations(enumerate(inventory.gpus), 2):
        links = inventory.links.joining(first.uuid, second.uuid)
        if links:
            yield one, other, links


def _parents(places: list[PciPlace]) -> list[str]:
    """Return for each device the lowest PCIe bridge above it that is also above another device.

    Usually this is a PCIe switch that a GPU shares with a NIC; else the host bridge, or nothing.
    """
    above: dict[str, int] = {}
    for place in places:
        for step in place.path:
            above[step] = above.get(step, 0) + 1
    return [
        next((step for step in reversed(place.path) if above[step] > 1), place.path[0])
        if place.path
        else ""
        for place in places
    ]
