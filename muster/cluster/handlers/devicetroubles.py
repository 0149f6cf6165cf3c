"""Devices that differ from a plan: unhealthy ones, and ones that another pod was given.

Two questions are answered from the model:

- May a *held* pod still be bound to its planned node (``lost``)? A device that its plan names may
  have become unhealthy, or the kubelet may have given it to another pod. If other devices of the
  node suit, the kubelet takes those. If none does, the pod would be stuck.
- What is reported about a node (``troubles_on``)? Which pod has, or is planned to get, which
device.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from muster.cluster.devices.choice import choose
from muster.cluster.devices.claims import PRESUMED, Named, PackedClaim, all_healthy
from muster.cluster.devices.onenode import WIDTH, Layout, PlacedShare, fits, put
from muster.cluster.devices.sharenames import locate, share_by_name
from muster.cluster.devices.table import DeviceTable
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.model import Model
from muster.cluster.tables.pods import PodState

DEVICE_UNHEALTHY: Final = "planned device unhealthy"
DEVICE_TAKEN: Final = "planned device taken"
NO_DEVICE_LEFT: Final = "no device left"
GONE: Final = "this instance is not listed any more"
REPLACEABLE: Final = frozenset({DEVICE_UNHEALTHY, DEVICE_TAKEN})
"""Reasons why a bound pod gets other devices of its node than planned."""


class TroubleKind(StrEnum):
    """What is wrong with a device of a pod."""

    UNHEALTHY = "unhealthy"
    TAKEN = "taken"  # its plan names what the kubelet gave to another pod
    OTHERWISE = "given otherwise"  # it was given another device than its plan names


@dataclass(frozen=True, slots=True)
class DeviceTrouble:
    """One device of one pod."""

    #: What is wrong.
    kind: TroubleKind
    #: The pod.
    uid: PodUid
    #: Its gang, ``None`` for a pod without one.
    gang: GangKey | None
    #: The node.
    node: str
    #: Its name as in a plan; for OTHERWISE the device that the pod was given.
    device: str
    #: Why the device is unhealthy, as the node reports it.
    reason: str = ""
    #: For TAKEN, the pod that has the device.
    holder: PodUid | None = None
    #: Whether the pod is bound to the node, and not only planned for it.
    bound: bool = True


def lost(model: Model, row: int, node: int) -> str:
    """Return why a held pod cannot get the devices that its plan names on a node, "": it can."""
    devices, hold = model.devices, model.holds[row]
    names = () if hold is None else hold.devices.get(model.nodes.names[node], ())
    if names and _gone(devices, node, names):
        return _unless_others(devices, row, node, DEVICE_UNHEALTHY)
    if not names or not (devices.has_unhealthy(node) or devices.given.any(node)):
        return ""
    placed = devices.placed_shares(row, node, names)
    if placed is None or devices.given.to(row, node) is not None:
        return ""
    layout = devices.slots(node)
    if not all(layout[share.device].healthy for share in placed):
        return _unless_others(devices, row, node, DEVICE_UNHEALTHY)
    taken = _uses(layout, [c for c in _given_claims(devices, node) if c.pod != row])
    if not fits(all_healthy(layout), taken, placed):
        return _unless_others(devices, row, node, DEVICE_TAKEN)
    return ""


def _gone(devices: DeviceTable, node: int, names: Iterable[str]) -> list[str]:
    """Return the named MIG instances that no longer exist on their GPUs.

    A pod with a plan that names one has an open claim, so other nodes need no check.
    """
    if node not in devices.open:
        return []
    layout, index = devices.slots(node), {n: i for i, n in enumerate(devices.names[node])}
    return [
        name
        for name in names
        if locate(index, name)[0] >= 0
        and layout[locate(index, name)[0]].shape.placements
        and share_by_name(layout, index, name) is None
    ]


def troubles_on(model: Model, node: int) -> list[DeviceTrouble]:
    """Return the troubles with a node's devices, sorted by pod and device."""
    found = [*_unhealthy(model, node), *_vanished(model, node), *_misplaced(model, node)]
    return sorted(found, key=lambda trouble: (trouble.uid, trouble.kind, trouble.device))


def _unless_others(devices: DeviceTable, row: int, node: int, reason: str) -> str:
    layout = devices.slots(node)
    beside = _uses(layout, [claim for claim in devices.claims_on(node) if claim.pod != row])
    others = choose(layout, beside, devices.needs(row, node) or ())
    return reason if others is not None else NO_DEVICE_LEFT


def _given_claims(devices: DeviceTable, node: int) -> list[PackedClaim]:
    return [
        claim
        for claim in devices.claims_on(node)
        if not claim.flags & PRESUMED and devices.given.to(claim.pod, node) is not None
    ]


def _uses(layout: Layout, claims: list[PackedClaim]) -> list[int]:
    uses = [0] * (len(layout) * WIDTH)
    for claim in claims:
        put(uses, claim.share)
    return uses


def _unhealthy(model: Model, node: int) -> Iterator[DeviceTrouble]:
    """Yield the unhealthy devices that pods are known to have."""
    devices = model.devices
    if not devices.has_unhealthy(node):
        return
    layout = devices.slots(node)
    unhealthy = set()
    for claim in devices.claims_on(node):
        slot, known = layout[claim.device], not claim.flags & PRESUMED
        if not slot.healthy and known and model.pods.node[claim.pod] == node:
            unhealthy.add((claim.pod, devices.name(node, claim), slot.reason))
    for pod, device, reason in unhealthy:
        yield _trouble(model, TroubleKind.UNHEALTHY, pod, node, device, reason=reason)


def _vanished(model: Model, node: int) -> Iterator[DeviceTrouble]:
    """Yield the MIG instances of pods that are no longer listed, which means unhealthy."""
    devices = model.devices
    for pod, named in devices.open.get(node, {}).items():
        if model.pods.node[pod] == node:
            for name in _gone(devices, node, devices.given.to(pod, node) or named.names):
                yield _trouble(model, TroubleKind.UNHEALTHY, pod, node, name, reason=GONE)


def _misplaced(model: Model, node: int) -> Iterator[DeviceTrouble]:
    """Yield the pods that the kubelet gave other devices than their plans name."""
    devices = model.devices
    if not devices.given.any(node) or not devices.slots(node):
        return
    holders = _given_claims(devices, node)
    for pod, named in devices.open.get(node, {}).items():
        if model.pods.node[pod] != node or not named.names:
            continue
        had = devices.had(pod, node)
        if had:
            yield _trouble(model, TroubleKind.OTHERWISE, pod, node, " ".join(had))
        else:
            yield from _taken(model, pod, node, named, holders)


def _taken(
    model: Model, pod: int, node: int, named: Named, holders: list[PackedClaim]
) -> Iterator[DeviceTrouble]:
    layout = all_healthy(model.devices.slots(node))
    placed = model.devices.placed_shares(pod, node, named.names) or []
    for name, share in zip(named.names, placed, strict=False):
        other = next((claim for claim in holders if _collide(layout, share, claim)), None)
        if other is not None:
            holder = model.pods.uids[other.pod]
            yield _trouble(model, TroubleKind.TAKEN, pod, node, name, holder=holder)


def _collide(layout: Layout, share: PlacedShare, claim: PackedClaim) -> bool:
    return share.device == claim.device and not fits(layout, _uses(layout, [claim]), [share])


def _trouble(
    model: Model,
    kind: TroubleKind,
    pod: int,
    node: int,
    device: str,
    *,
    reason: str = "",
    holder: PodUid | None = None,
) -> DeviceTrouble:
    gang = model.pods.gang[pod]
    return DeviceTrouble(
        kind=kind,
        uid=model.pods.uids[pod],
        gang=model.gangs.keys[gang] if gang >= 0 else None,
        node=model.nodes.names[node],
        device=device,
        reason=reason,
        holder=holder,
        bound=model.pods.state[pod] == PodState.BOUND,
    )
