"""Replicas of devices: time slices and MPS.

A rule speaks of the devices of one resource. Those it means are shown ``replicas`` times, under
its ``rename``, under ``<name>.shared``, or under the old name; the others stay whole. So each
GPU of a node can be shared in its own measure (asked of NVIDIA's plugin in its issues 404, 628):

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
    Kind,
    Problem,
    Sharing,
)
from deviceplugin.resources.picking import pick
from deviceplugin.resources.settings import Rule, SharingSettings, Ways
from deviceplugin.resources.wholedevices import Candidate, Group

_MPS_CLIENTS: Final = 48
"""Of one MPS server since compute capability 7.5 (NVIDIA/k8s-device-plugin mps/device.go)."""
_MPS_CLIENTS_BEFORE: Final = 16
_MANY_CLIENTS_SINCE: Final = (7, 5)


@dataclass(frozen=True, slots=True)
class Way:
    """The one way in which a node shares, with its rules."""

    sharing: Sharing
    settings: SharingSettings

    @property
    def most(self) -> int:
        """How many shared devices one container may have; 0: any number.

        With MPS one, unless the operator says otherwise: two replicas are no more of a GPU
        than one (api/config/v1 of NVIDIA's plugin sets it so where it is not said).
        """
        told = self.settings.fail_requests_greater_than_one
        return int(self.sharing is Sharing.MPS if told is None else told)

    def name_of(self, rule: Rule) -> str:
        """Return the resource that a rule's replicas are shown under."""
        if rule.rename:
            return names.full(rule.rename)
        return names.full(rule.name) + (names.SHARED if self.settings.rename_by_default else "")


def way(ways: Ways) -> Way | None:
    """Return how a node shares; ``None`` where it does not."""
    if ways.mps is not None:
        return Way(Sharing.MPS, ways.mps)
    return Way(Sharing.TIME_SLICING, ways.time_slicing) if ways.time_slicing is not None else None


def shared(
    groups: Sequence[Group], ways: Ways
) -> tuple[tuple[Advertised, ...], tuple[Problem, ...]]:
    """Return resources, several of which may have one name, and what rules could not do."""
    chosen = way(ways)
    found: list[Advertised] = []
    problems: list[Problem] = []
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
    chosen: Way, rule: Rule, group: Group, left: dict[str, Candidate], problems: list[Problem]
) -> Iterator[Candidate]:
    """Yield what a rule shares, and take it from ``left``."""
    members, lacking = pick(group.members, rule.devices, rule.models)
    if lacking:
        text = f"{lacking} not there; {len(members)} devices are shared"
        problems.append(Problem(group.resource, f"devices of the rule for {rule.name}: {text}"))
    for candidate in members:
        objection = _objection(chosen, rule, group, candidate)
        if objection:
            problems.append(Problem(group.resource, f"{candidate.device.id}: {objection}"))
        elif candidate.device.id not in left:
            text = "is shared by an earlier rule; a device is shared in one way"
            problems.append(Problem(group.resource, f"{candidate.device.id}: {text}"))
        else:
            del left[candidate.device.id]
            yield candidate


def _objection(chosen: Way, rule: Rule, group: Group, candidate: Candidate) -> str:
    """Return why a device is not shared so; it stays whole then."""
    if chosen.sharing is not Sharing.MPS:
        return ""
    if group.kind is Kind.MIG:
        return "MIG instances are not shared by MPS; take timeSlicing"
    if candidate.gpu.vendor is not Vendor.NVIDIA:
        return "MPS is NVIDIA's; take timeSlicing"
    newer = candidate.gpu.compute >= _MANY_CLIENTS_SINCE
    clients = _MPS_CLIENTS if newer else _MPS_CLIENTS_BEFORE
    if rule.replicas > clients:
        return f"an MPS server has at most {clients} clients, and replicas is {rule.replicas}"
    return ""


def _replicated(chosen: Way, rule: Rule, group: Group, members: Sequence[Candidate]) -> Advertised:
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
