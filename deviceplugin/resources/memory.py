"""GPUs as units of memory: ``aliyun.com/gpu-mem: 12`` is 12 GiB of one GPU.

Every unit is an id, since the kubelet counts ids. A message to it holds some 60,000 ids (4 MiB,
gRPC's limit), so units are GiB and not MiB, and a node with more than 16,384 units needs larger
ones.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from deviceplugin.resources import names
from deviceplugin.resources.advertisements import (
    MOST_IDS,
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    AdvertisementProblem,
    SharingMode,
)
from deviceplugin.resources.picking import pick
from deviceplugin.resources.settings import MemorySlices
from deviceplugin.resources.wholedevices import ResourceDevices, WholeDevice

_MIB_PER_GIB: Final = 1024


def sliced(
    groups: Sequence[ResourceDevices], slices: Sequence[MemorySlices]
) -> tuple[tuple[ResourceDevices, ...], tuple[Advertised, ...], tuple[AdvertisementProblem, ...]]:
    """Return the devices that stay whole, the resources of memory, and the problems."""
    free = [
        member for group in groups if group.kind is AdvertisedKind.GPU for member in group.members
    ]
    found: list[Advertised] = []
    problems: list[AdvertisementProblem] = []
    for wanted in slices:
        members, lacking = pick(free, wanted.devices, wanted.models)
        if lacking:
            problems.append(
                AdvertisementProblem(wanted.resource, f"devices: {lacking} not there, or taken")
            )
        small = [member for member in members if not _count(member, wanted.unit_gib)]
        if small:
            text = (
                f"unitGiB: {wanted.unit_gib} is more than {small[0].gpu.uuid} has; it stays whole"
            )
            problems.append(AdvertisementProblem(wanted.resource, text))
            members = tuple(member for member in members if member not in small)
        if _too_many(members, wanted.unit_gib):
            problems.append(
                AdvertisementProblem(wanted.resource, _advice(members, wanted.unit_gib))
            )
            continue
        used = {member.device.id for member in members}
        free = [member for member in free if member.device.id not in used]
        if members:
            found.append(_units(wanted, members))
    taken = {device.device for each in found for device in each.devices}
    return tuple(_without(groups, taken)), tuple(found), tuple(problems)


def _without(groups: Sequence[ResourceDevices], taken: set[str]) -> list[ResourceDevices]:
    left = (
        replace(group, members=tuple(m for m in group.members if m.device.device not in taken))
        for group in groups
    )
    return [group for group in left if group.members]


def _units(wanted: MemorySlices, members: Sequence[WholeDevice]) -> Advertised:
    each = [(member.device, _count(member, wanted.unit_gib)) for member in members]
    return Advertised(
        wanted.resource,
        AdvertisedKind.GPU,
        tuple(_unit(device, number) for device, count in each for number in range(count)),
        SharingMode.MEMORY,
        shares=max(count for _, count in each),
        unit_mib=wanted.unit_gib * _MIB_PER_GIB,
        renamed=True,
    )


def _unit(device: AdvertisedDevice, number: int) -> AdvertisedDevice:
    return replace(device, id=names.unit(device.id, number), share=number)


def _count(member: WholeDevice, unit_gib: int) -> int:
    return member.gpu.memory_mib // (unit_gib * _MIB_PER_GIB)


def _total(members: Sequence[WholeDevice], unit_gib: int) -> int:
    return sum(_count(member, unit_gib) for member in members)


def _too_many(members: Sequence[WholeDevice], unit_gib: int) -> bool:
    return _total(members, unit_gib) > MOST_IDS


def _advice(members: Sequence[WholeDevice], unit_gib: int) -> str:
    coarse = unit_gib
    while _too_many(members, coarse):
        coarse += 1
    return (
        f"unitGiB: {unit_gib} makes {_total(members, unit_gib)} ids, and the kubelet is shown at "
        f"most {MOST_IDS}; write unitGiB: {coarse}. The GPUs stay whole"
    )
