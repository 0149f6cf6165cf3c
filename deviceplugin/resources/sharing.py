"""Replicas of devices: time slices and MPS.

A rule is about devices of one resource. Each of them is shown ``replicas`` times, under the rule's
``rename``, under ``<name>.shared``, or under the old name; the other devices stay whole. So each
GPU of a node can have its own number of replicas (NVIDIA's plugin has requests for it: 404, 628):

    nvidia.com/gpu: 0 1 2 3 ── rule: devices [0, 1], replicas 4, rename gpu.small
                     └─┴────► nvidia.com/gpu.small: 0::0 … 0::3, 1::0 … 1::3
                         └─┴► nvidia.com/gpu: 2, 3
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from deviceplugin.model.inventory import Vendor
from deviceplugin.resources import names
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    AdvertisementProblem,
    SharingMode,
)
from deviceplugin.resources.picking import pick
from deviceplugin.resources.settings import SharingRule, SharingSettings, SharingWays
from deviceplugin.resources.wholedevices import ResourceDevices, WholeDevice

_MPS_CLIENTS: Final = 48
"""Of one MPS server since compute capability 7.5 (NVIDIA/k8s-device-plugin mps/device.go)."""
_MPS_CLIENTS_BEFORE: Final = 16
_MANY_CLIENTS_SINCE: Final = (7, 5)


@dataclass(frozen=True, slots=True)
class Way:
    """The one way in which a node shares, with its rules."""

    sharing: SharingMode
    settings: SharingSettings

    @property
    def most(self) -> int:
        """How many shared devices one container may have; 0: any number.

        The default is one with MPS, since two replicas are no more of a GPU than one (NVIDIA's
        plugin has the same default in api/config/v1), and any number with time slices.
        """
        own = self.settings.fail_requests_greater_than_one
        return int(self.sharing is SharingMode.MPS if own is None else own)

    def name_of(self, rule: SharingRule) -> str:
        """Return the resource that a rule's replicas are shown under."""
        if rule.rename:
            return names.full(rule.rename)
        return names.full(rule.name) + (names.SHARED if self.settings.rename_by_default else "")


def way(ways: SharingWays) -> Way | None:
    """Return how a node shares; ``None`` where it does not."""
    if ways.mps is not None:
        return Way(SharingMode.MPS, ways.mps)
    return (
        Way(SharingMode.TIME_SLICING, ways.time_slicing) if ways.time_slicing is not None else None
    )


def shared(
    groups: Sequence[ResourceDevices], ways: SharingWays
) -> tuple[tuple[Advertised, ...], tuple[AdvertisementProblem, ...]]:
    """Return resources, of which several may have one name, and the problems of rules."""
    chosen = way(ways)
    found: list[Advertised] = []
    problems: list[AdvertisementProblem] = []
    for group in groups:
        left = {member.device.id: member for member in group.members}
        for rule in chosen.settings.resources if chosen else ():
            if chosen and names.full(rule.name) == group.resource:
                members = [*_taken(chosen, rule, group, left, problems)]
                if members:
                    found.append(_replicated(chosen, rule, group, members))
        if left:
            whole = tuple(candidate.device for candidate in left.values())
            found.append(Advertised(group.resource, group.kind, whole, profile=group.profile))
    return tuple(found), tuple(problems)


def _taken(
    chosen: Way,
    rule: SharingRule,
    group: ResourceDevices,
    left: dict[str, WholeDevice],
    problems: list[AdvertisementProblem],
) -> Iterator[WholeDevice]:
    """Yield the devices that a rule shares, and remove them from ``left``."""
    members, lacking = pick(group.members, rule.devices, rule.models)
    if lacking:
        text = f"{lacking} not there; {len(members)} devices are shared"
        problems.append(
            AdvertisementProblem(group.resource, f"devices of the rule for {rule.name}: {text}")
        )
    for candidate in members:
        objection = _objection(chosen, rule, group, candidate)
        if objection:
            problems.append(
                AdvertisementProblem(group.resource, f"{candidate.device.id}: {objection}")
            )
        elif candidate.device.id not in left:
            text = "is shared by an earlier rule; a device is shared in one way"
            problems.append(AdvertisementProblem(group.resource, f"{candidate.device.id}: {text}"))
        else:
            del left[candidate.device.id]
            yield candidate


def _objection(
    chosen: Way, rule: SharingRule, group: ResourceDevices, candidate: WholeDevice
) -> str:
    """Return why a rule cannot share a device, which then stays whole; empty where it can."""
    if chosen.sharing is not SharingMode.MPS:
        return ""
    if group.kind is AdvertisedKind.MIG:
        return "MIG instances are not shared by MPS; take timeSlicing"
    if candidate.gpu.vendor is not Vendor.NVIDIA:
        return "MPS is NVIDIA's; take timeSlicing"
    newer = candidate.gpu.compute >= _MANY_CLIENTS_SINCE
    clients = _MPS_CLIENTS if newer else _MPS_CLIENTS_BEFORE
    if rule.replicas > clients:
        return f"an MPS server has at most {clients} clients, and replicas is {rule.replicas}"
    return ""


def _replicated(
    chosen: Way, rule: SharingRule, group: ResourceDevices, members: Sequence[WholeDevice]
) -> Advertised:
    name = chosen.name_of(rule)
    return Advertised(
        name,
        group.kind,
        tuple(device for member in members for device in _replicas(member.device, rule.replicas)),
        chosen.sharing,
        group.profile,
        rule.replicas,
        chosen.most,
        renamed=name != group.resource,
    )


def _replicas(device: AdvertisedDevice, count: int) -> Iterator[AdvertisedDevice]:
    for number in range(count):
        yield replace(device, id=names.replica(device.id, number), share=number)
