"""What a node's devices should be, what they are, and the next steps from the one to the other.

One network on one node::

      ┌────────┐ MakeBridge ┌────────┐ MakeVxlan ┌──────────┐ Settle ┌──────────┐ AddRemote,
      │ absent ├───────────►│ bridge ├──────────►│ separate ├───────►│ standing │ DropEntry:
      └────────┘            └────────┘           └──────────┘        └────┬─────┘ as wanted
          ▲                  ▲ Adopt: the CNI plugin was faster           │
          │ Remove           │ and has made the bridge for a pod          │ not wanted any more
          └──────────────────┴────────────────────────────────────────────┘

``steps`` looks at what is there and names what can be done now; after that one looks again, until
nothing is left. So nothing depends on what was done before, by whom, or how far it got: an agent
that was killed anywhere goes on by looking.

What is ours carries a mark that the kernel sets in the very moment it makes the device: its group.
Nothing without the mark is ever changed or removed. The one exception is a bridge of the name that
our attachment has told the CNI plugin, with pods on it or nothing: that one is marked, and so ours.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from muster.kube.kinds.jobnetworks import BRIDGE_PREFIX, VXLAN_PREFIX, bridge_name, vxlan_name

MARK: Final = 0x4D767369
"""The group of our devices (``ip link show group 1299608425``); others leave it at 0."""
ANY_MAC: Final = "00:00:00:00:00:00"
"""Where frames go whose receiver is not known: one entry per node, and each gets a copy."""
BRIDGE: Final = "bridge"
VXLAN: Final = "vxlan"
VETH: Final = "veth"
_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class WantedNetwork:
    """One network as this node should have it. ``remotes``: underlay addresses of the others."""

    vni: int
    mtu: int
    port: int
    local: str
    remotes: frozenset[str]


@dataclass(frozen=True, slots=True)
class NetworkDevice:
    """A network device. ``master``: index of the bridge it is a port of, 0: of none.

    ``vni``, ``local``, ``port``: of a VXLAN device, else 0 and "".
    """

    index: int
    name: str
    kind: str
    group: int = 0
    mtu: int = 0
    is_up: bool = False
    answers_arp: bool = True
    master: int = 0
    vni: int = 0
    local: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class ForwardingEntry:
    """A line of a VXLAN device's forwarding table: frames for ``mac`` go to ``remote``."""

    index: int
    mac: str
    remote: str


@dataclass(frozen=True, slots=True)
class Present:
    """All devices of the node, and the forwarding tables of our VXLAN devices."""

    devices: tuple[NetworkDevice, ...] = ()
    entries: tuple[ForwardingEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class MakeBridge:
    """Create the bridge."""

    vni: int
    name: str
    mtu: int


@dataclass(frozen=True, slots=True)
class MakeVxlan:
    """Create the VXLAN device."""

    name: str
    wanted: WantedNetwork


@dataclass(frozen=True, slots=True)
class Adopt:
    """Mark a bridge that the CNI plugin has made for us."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class Settle:
    """Set a device's MTU and master, have it up, and the host silent on it."""

    index: int
    name: str
    mtu: int
    master: int = 0


@dataclass(frozen=True, slots=True)
class AddRemote:
    """Send frames for everybody to a node, too."""

    index: int
    remote: str


@dataclass(frozen=True, slots=True)
class DropEntry:
    """Send these frames to a node no longer: it hosts no member any more."""

    entry: ForwardingEntry


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a device of ours."""

    index: int
    name: str


Step = MakeBridge | MakeVxlan | Adopt | Settle | AddRemote | DropEntry | Remove


@dataclass(frozen=True, slots=True)
class Clash:
    """A device of somebody else has the name that one of ours must have."""

    vni: int
    name: str
    kind: str


def steps(wanted: Mapping[int, WantedNetwork], present: Present) -> tuple[list[Step], list[Clash]]:
    """Return what can be done now, removals first, and what stands in the way."""
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
    """Return the networks of which everything stands as it should."""
    return tuple(
        vni
        for vni, each in sorted(wanted.items())
        if steps({vni: each}, _only(vni, present)) == ([], [])
    )


def held(present: Present) -> set[int]:
    """Return the VNIs that have any device of ours."""
    return {
        vni
        for device in present.devices
        if device.group == MARK and (vni := vni_of(device.name)) is not None
    }


def vni_of(name: str) -> int | None:
    """Return the VNI that a device's name says, None for a name that is not one of ours."""
    for prefix in (BRIDGE_PREFIX, VXLAN_PREFIX):
        digits = name.removeprefix(prefix)
        if name.startswith(prefix) and digits.isdecimal() and len(digits) <= _DIGITS:
            return int(digits)
    return None


def _only(vni: int, present: Present) -> Present:
    """Return what there is without other networks of ours: they are no surplus here."""
    names = {bridge_name(vni), vxlan_name(vni)}
    kept = tuple(d for d in present.devices if d.group != MARK or d.name in names)
    return Present(kept, present.entries)


def _surplus(wanted: Mapping[int, WantedNetwork], present: Present) -> Iterator[Step]:
    """Yield removals of ours that nobody wants; VXLAN first, so that no frame leaves any more."""
    ours = [d for d in present.devices if d.group == MARK and vni_of(d.name) is not None]
    for device in sorted(ours, key=lambda device: (device.kind != VXLAN, device.name)):
        if vni_of(device.name) not in wanted:
            yield Remove(device.index, device.name)


@dataclass(frozen=True, slots=True)
class _Here:
    """One wanted network and what there is of it."""

    wanted: WantedNetwork
    bridge: NetworkDevice | None
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
        """Yield what makes the table right before the device is let loose on the bridge."""
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
    """Tell whether this is what the CNI plugin makes: a bridge with pods on it, or with nothing."""
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
