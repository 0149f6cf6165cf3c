"""From what a node has to what it advertises.

::

    whole.groups ──► memory.sliced ──► sharing.shared ──┐
    (MIG strategy)   (GPUs as units)   (replicas)       ├─► one resource per name ──► checked
    sriov.pools ──► rdma.pools ─────────────────────────┘

A device takes one way only: the next step does not see what a step has taken.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from deviceplugin.model.inventory import Inventory
from deviceplugin.resources import memory, rdma, sharing, sriov, wholedevices
from deviceplugin.resources.advertisements import (
    LONGEST_ID,
    MOST_IDS,
    Advertised,
    AdvertisedKind,
    Advertisement,
    AdvertisementProblem,
    SharingMode,
)
from deviceplugin.resources.settings import ResourceSettings


def advertise(inventory: Inventory, settings: ResourceSettings) -> Advertisement:
    """Return what the kubelet is shown of a node, as if all devices were healthy."""
    groups, odd = wholedevices.groups(inventory, settings)
    left, units, unsliced = memory.sliced(groups, settings.memory)
    shared, unshared = sharing.shared(left, settings.sharing)
    functions, lacking = sriov.pools(inventory, settings.sriov_pools)
    pools, unpooled = rdma.pools(_without(inventory, functions), settings.nic_pools)
    problems = [*odd, *unsliced, *unshared, *lacking, *unpooled]
    merged = _merged([*shared, *units, *functions, *pools], problems)
    found = tuple(each for each in merged if _presentable(each, problems))
    return Advertisement(tuple(sorted(found, key=lambda each: each.resource)), tuple(problems))


def _without(inventory: Inventory, found: Iterable[Advertised]) -> Inventory:
    """Return the inventory without the NICs that are taken already."""
    taken = {device.device for each in found for device in each.devices}
    return replace(inventory, nics=tuple(n for n in inventory.nics if n.name not in taken))


def _merged(found: Iterable[Advertised], problems: list[AdvertisementProblem]) -> list[Advertised]:
    """Join resources of one name that mean the same; leave out those that mean something else."""
    by_name: dict[str, Advertised] = {}
    for each in found:
        first = by_name.get(each.resource)
        if first is None:
            by_name[each.resource] = each
        elif _alike(first, each):
            by_name[each.resource] = _joined(first, each)
        else:
            text = f"stands for {_meaning(first)} and {_meaning(each)}; rename one of them"
            problems.append(
                AdvertisementProblem(each.resource, f"{text}. Only the first are advertised")
            )
    return list(by_name.values())


def _alike(one: Advertised, other: Advertised) -> bool:
    ways = {one.sharing, other.sharing} - {SharingMode.NONE}
    same = (one.kind, one.profile, one.unit_mib) == (other.kind, other.profile, other.unit_mib)
    return same and len(ways) <= 1


def _joined(one: Advertised, other: Advertised) -> Advertised:
    return replace(
        one,
        devices=(*one.devices, *other.devices),
        sharing=one.sharing if one.sharing is not SharingMode.NONE else other.sharing,
        shares=max(one.shares, other.shares),
        most=max(one.most, other.most),
        renamed=one.renamed or other.renamed,
    )


def _meaning(each: Advertised) -> str:
    what = {
        AdvertisedKind.GPU: "GPUs",
        AdvertisedKind.MIG: f"MIG instances {each.profile}",
        AdvertisedKind.NIC: "NICs",
    }[each.kind]
    return f"memory of {what}" if each.unit_mib else what


def _presentable(each: Advertised, problems: list[AdvertisementProblem]) -> bool:
    """Return whether the kubelet accepts the resource; else add the problem."""
    if len(each.devices) > MOST_IDS:
        devices = len({device.device for device in each.devices})
        text = f"replicas make {len(each.devices)} ids of {devices} devices"
        limit = f"the kubelet is shown at most {MOST_IDS}"
        advice = f"write replicas: {MOST_IDS // devices}"
        problems.append(AdvertisementProblem(each.resource, f"{text}, and {limit}; {advice}"))
        return False
    for device in each.devices:
        if len(device.id) > LONGEST_ID:
            text = f"id {device.id} is longer than the {LONGEST_ID} characters the kubelet takes"
            problems.append(
                AdvertisementProblem(each.resource, f"{text}; the resource is not advertised")
            )
            return False
    return True


# --- how others look at it ----------------------------------------------------------------


def resource_of(advertisement: Advertisement) -> Mapping[str, str]:
    """Return the resource that each GPU, MIG instance and NIC is shown under."""
    return MappingProxyType(dict(_shown(advertisement)))


def _shown(advertisement: Advertisement) -> Iterator[tuple[str, str]]:
    for each in advertisement.resources:
        for device in each.devices:
            for name in device.parents if each.kind is AdvertisedKind.NIC else (device.device,):
                yield name, each.resource


def shares_of(advertisement: Advertisement) -> Mapping[str, int]:
    """Return how many ids there are of each device that is shared."""
    found: dict[str, int] = {}
    for each in advertisement.resources:
        for device in each.devices:
            if device.share is not None:
                found[device.device] = found.get(device.device, 0) + 1
    return MappingProxyType(found)
