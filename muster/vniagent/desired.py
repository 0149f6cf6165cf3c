"""A node's wanted devices, its present devices, and the next steps from these to those.

One network on one node::

      ┌────────┐ MakeBridge ┌────────┐ MakeVxlan ┌──────────┐ Settle ┌──────────┐ AddRemote,
      │ absent ├───────────►│ bridge ├──────────►│ separate ├───────►│ standing │ DropEntry:
      └────────┘            └────────┘           └──────────┘        └────┬─────┘ as wanted
          ▲                  ▲ Adopt: the CNI plugin was faster           │
          │ Remove           │ and has made the bridge for a pod          │ not wanted any more
          └──────────────────┴────────────────────────────────────────────┘

``steps`` compares present and wanted devices and returns what can be done now. It is called again
after those steps, until nothing is left. So nothing depends on earlier steps: an agent that was
killed at any point goes on from the present devices.

Muster's devices have a mark, the device group, which the kernel sets when it creates a device. A
device without the mark is never changed or removed. The only exception is a bridge with the name
that Muster's attachment names for the CNI plugin, and with only pods on it: it gets the mark.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from muster.kube.kinds.jobnetworks import BRIDGE_PREFIX, VXLAN_PREFIX, bridge_name, vxlan_name

MARK: Final = 0x4D767369
"""The group of Muster's devices (``ip link show group 1299608425``); others have 0."""
ANY_MAC: Final = "00:00:00:00:00:00"
"""The entries for frames with an unknown receiver: one per node, and each node gets a copy."""
BRIDGE: Final = "bridge"
VXLAN: Final = "vxlan"
VETH: Final = "veth"
_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class WantedNetwork:
    """One network as this node should have it."""

    vni: int
    mtu: int
    #: UDP port of VXLAN.
    port: int
    #: Underlay address of this node.
    local: str
    #: Underlay addresses of the other nodes.
    remotes: frozenset[str]


@dataclass(frozen=True, slots=True)
class NetworkDevice:
    """A network device."""

    #: The kernel's number of the device.
    index: int
    name: str
    #: "bridge", "vxlan", "veth" and so on.
    kind: str
    #: ``MARK`` for devices of Muster.
    group: int = 0
    mtu: int = 0
    is_up: bool = False
    answers_arp: bool = True
    #: Index of the bridge that it is a port of, 0 for none.
    master: int = 0
    #: Of a VXLAN device, else 0.
    vni: int = 0
    #: Underlay address of a VXLAN device, else "".
    local: str = ""
    #: UDP port of a VXLAN device, else 0.
    port: int = 0


@dataclass(frozen=True, slots=True)
class ForwardingEntry:
    """An entry of a VXLAN device's forwarding table."""

    #: Index of the device.
    index: int
    #: The receiver of frames, ``ANY_MAC`` for unknown ones.
    mac: str
    #: Underlay address of the node that they are sent to.
    remote: str


@dataclass(frozen=True, slots=True)
class Present:
    """What the kernel has now."""

    #: All devices of the node.
    devices: tuple[NetworkDevice, ...] = ()
    #: The forwarding tables of Muster's VXLAN devices.
    entries: tuple[ForwardingEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class MakeBridge:
    """Create the bridge of a network."""

    vni: int
    name: str
    mtu: int


@dataclass(frozen=True, slots=True)
class MakeVxlan:
    """Create the VXLAN device of a network."""

    name: str
    wanted: WantedNetwork


@dataclass(frozen=True, slots=True)
class Adopt:
    """Mark a bridge that the CNI plugin has made for a network of Muster."""

    #: Of the bridge.
    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Settle:
    """Set a device's MTU and master, disable ARP, and set it up."""

    index: int
    name: str
    mtu: int
    #: Index of the bridge that it joins, 0 for the bridge itself.
    master: int = 0


@dataclass(frozen=True, slots=True)
class AddRemote:
    """Add an entry that sends frames with an unknown receiver to a node, too."""

    #: Index of the VXLAN device.
    index: int
    #: Underlay address of the node.
    remote: str


@dataclass(frozen=True, slots=True)
class DropEntry:
    """Delete an entry for a node that has no member any more."""

    entry: ForwardingEntry


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a device of Muster."""

    index: int
    name: str


Step = MakeBridge | MakeVxlan | Adopt | Settle | AddRemote | DropEntry | Remove


@dataclass(frozen=True, slots=True)
class Clash:
    """A device without the mark has the name that a device of a network must have."""

    vni: int
    #: Name of the device.
    name: str
    #: Its kind, as in ``NetworkDevice``.
    kind: str


def steps(wanted: Mapping[int, WantedNetwork], present: Present) -> tuple[list[Step], list[Clash]]:
    """Return the steps that can be done now, removals first, and the clashes."""
    by_name = {device.name: device for device in present.devices}
    found: list[Step] = list(_surplus(wanted, present))
    clashes: list[Clash] = []
    for vni in sorted(wanted):
        here = _Here(wanted[vni], by_name.get(bridge_name(vni)), by_name.get(vxlan_name(vni)))
        clash = here.clash(present.devices)
        if clash is not None:
            clashes.append(clash)
        else:
            found += here.steps(present.entries)
    return found, clashes


def ready(wanted: Mapping[int, WantedNetwork], present: Present) -> tuple[int, ...]:
    """Return the VNIs of the wanted networks that need no step and have no clash."""
    return tuple(
        vni
        for vni, each in sorted(wanted.items())
        if steps({vni: each}, _only(vni, present)) == ([], [])
    )


def held(present: Present) -> set[int]:
    """Return the VNIs of Muster's devices."""
    return {
        vni
        for device in present.devices
        if device.group == MARK and (vni := vni_of(device.name)) is not None
    }


def vni_of(name: str) -> int | None:
    """Return the VNI in a device's name, None for a name that is not one of Muster's."""
    for prefix in (BRIDGE_PREFIX, VXLAN_PREFIX):
        digits = name.removeprefix(prefix)
        if name.startswith(prefix) and digits.isdecimal() and len(digits) <= _DIGITS:
            return int(digits)
    return None


def _only(vni: int, present: Present) -> Present:
    """Return the devices without those of other networks, which would count as surplus."""
    names = {bridge_name(vni), vxlan_name(vni)}
    devices = tuple(d for d in present.devices if d.group != MARK or d.name in names)
    return Present(devices, present.entries)


def _surplus(wanted: Mapping[int, WantedNetwork], present: Present) -> Iterator[Step]:
    """Yield removals of marked devices that are not wanted; VXLAN first, to stop frames early."""
    ours = [d for d in present.devices if d.group == MARK and vni_of(d.name) is not None]
    for device in sorted(ours, key=lambda device: (device.kind != VXLAN, device.name)):
        if vni_of(device.name) not in wanted:
            yield Remove(device.index, device.name)


@dataclass(frozen=True, slots=True)
class _Here:
    """One wanted network and its devices."""

    wanted: WantedNetwork
    #: The device with the name of its bridge, None where there is none.
    bridge: NetworkDevice | None
    #: The device with the name of its VXLAN device, None where there is none.
    vxlan: NetworkDevice | None

    def clash(self, devices: Iterable[NetworkDevice]) -> Clash | None:
        if self.vxlan is not None and not _is_ours(self.vxlan, VXLAN):
            return Clash(self.wanted.vni, self.vxlan.name, self.vxlan.kind)
        bridge = self.bridge
        if bridge is None or _is_ours(bridge, BRIDGE) or _is_the_plugins(bridge, devices):
            return None
        return Clash(self.wanted.vni, bridge.name, bridge.kind)

    def steps(self, entries: tuple[ForwardingEntry, ...]) -> Iterator[Step]:
        wanted, bridge, vxlan = self.wanted, self.bridge, self.vxlan
        if bridge is None:
            yield MakeBridge(wanted.vni, bridge_name(wanted.vni), wanted.mtu)
        elif bridge.group != MARK:
            yield Adopt(bridge.index, bridge.name)
        elif not _is_settled(bridge, wanted.mtu, 0):
            yield Settle(bridge.index, bridge.name, wanted.mtu)
        if vxlan is None:
            yield MakeVxlan(vxlan_name(wanted.vni), wanted)
        elif (vxlan.vni, vxlan.local, vxlan.port) != (wanted.vni, wanted.local, wanted.port):
            yield Remove(vxlan.index, vxlan.name)  # these cannot be changed
        else:
            yield from self._forwarding(vxlan, entries)
            if bridge is not None and not _is_settled(vxlan, wanted.mtu, bridge.index):
                yield Settle(vxlan.index, vxlan.name, wanted.mtu, bridge.index)

    def _forwarding(
        self, vxlan: NetworkDevice, entries: tuple[ForwardingEntry, ...]
    ) -> Iterator[Step]:
        """Yield the steps for the forwarding table, before the device joins the bridge."""
        mine = [entry for entry in entries if entry.index == vxlan.index]
        for entry in mine:
            if entry.remote not in self.wanted.remotes:
                yield DropEntry(entry)
        known = {entry.remote for entry in mine if entry.mac == ANY_MAC}
        for remote in sorted(self.wanted.remotes - known):
            yield AddRemote(vxlan.index, remote)


def _is_ours(device: NetworkDevice, kind: str) -> bool:
    return device.group == MARK and device.kind == kind


def _is_the_plugins(bridge: NetworkDevice, devices: Iterable[NetworkDevice]) -> bool:
    """Return whether the CNI plugin made this: an unmarked bridge with nothing but pods on it."""
    if bridge.kind != BRIDGE or bridge.group:
        return False
    return all(
        device.kind == VETH or device.group == MARK
        for device in devices
        if device.master == bridge.index
    )


def _is_settled(device: NetworkDevice, mtu: int, master: int) -> bool:
    silent = device.is_up and not device.answers_arp
    return silent and device.mtu == mtu and device.master == master
