"""Reading and changing devices by netlink (pyroute2), in the network namespace of the process.

pyroute2 has no types, so only this file uses it. What is set, and why:

* the group, in the message that creates the device: it marks the devices of Muster;
* learning: only a member's own node knows its address; without learning every frame to another node
  would be sent to all nodes. The entries for unknown receivers list all nodes;
* no ARP and no IPv6 address on bridge and VXLAN device: the host is no member of the network and
  does not answer in it;
* no lower device of the VXLAN device: the route to each node decides, as for any other packet.
"""

import errno
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Final, Self, assert_never

from pyroute2 import AsyncIPRoute
from pyroute2.netlink.exceptions import NetlinkError

from muster.vniagent.desired import (
    ANY_MAC,
    BRIDGE,
    MARK,
    VXLAN,
    AddRemote,
    Adopt,
    DropEntry,
    ForwardingEntry,
    MakeBridge,
    MakeVxlan,
    NetworkDevice,
    Present,
    Remove,
    Settle,
    Step,
)

log = logging.getLogger(__name__)

_UP: Final = 0x1  # linux/if.h IFF_UP
_NO_ARP: Final = 0x80  # IFF_NOARP
_NO_ADDRESS: Final = 1  # linux/if_link.h IN6_ADDR_GEN_MODE_NONE
_SELF: Final = 0x02  # linux/neighbour.h NTF_SELF: the device's own table, not the bridge's
_DONE_ALREADY: Final = frozenset({errno.EEXIST, errno.ENODEV, errno.ENOENT})
IPV6: Final = 6


class LinkError(Exception):
    """The kernel refused; the message names the step and the error."""


class Links:
    """An async context manager that owns a netlink socket."""

    def __init__(self, open_: Callable[[], Any] = AsyncIPRoute) -> None:
        self._open = open_
        self._stack = AsyncExitStack()
        self._ip: Any = None

    async def __aenter__(self) -> Self:
        self._ip = await self._stack.enter_async_context(self._open())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def read(self) -> Present:
        """Return the present devices. Raises ``LinkError``."""
        try:
            devices = [_device(each) async for each in await self._ip.get_links()]
            ours = [d for d in devices if d.kind == VXLAN and d.group == MARK]
            entries = [entry for device in ours for entry in await self._entries(device)]
        except NetlinkError as error:
            raise LinkError(f"reading devices: {error}") from error
        return Present(tuple(devices), tuple(entries))

    async def underlay_mtu(self, address: str) -> int | None:
        """Return the MTU of the device that has this address, None where none has it."""
        try:
            async for found in await self._ip.get_addr():
                if address in (found.get("local"), found.get("address")):
                    [link] = [each async for each in await self._ip.get_links(found["index"])]
                    return int(link.get("mtu"))
        except NetlinkError as error:
            raise LinkError(f"reading addresses: {error}") from error
        return None

    async def apply(self, step: Step) -> None:
        """Apply one step; a step that was applied before is no error. Raises ``LinkError``."""
        try:
            await self._apply(step)
        except NetlinkError as error:
            if error.code not in _DONE_ALREADY:
                raise LinkError(f"{step}: {error}") from error

    async def _apply(self, step: Step) -> None:
        match step:
            case MakeBridge(_, name, mtu):
                await self._ip.link("add", ifname=name, kind=BRIDGE, group=MARK, mtu=mtu)
            case MakeVxlan():
                await self._make_vxlan(step)
            case Adopt(index, _):
                await self._ip.link("set", index=index, group=MARK)
            case Settle():
                await self._settle(step)
            case AddRemote(index, remote):
                await self._ip.fdb("append", ifindex=index, lladdr=ANY_MAC, dst=remote)
            case DropEntry(entry):
                mac, dst = entry.mac, entry.remote
                await self._ip.fdb("del", ifindex=entry.index, lladdr=mac, dst=dst)
            case Remove(index, _):
                await self._ip.link("del", index=index)
            case _ as unreachable:
                assert_never(unreachable)

    async def _make_vxlan(self, step: MakeVxlan) -> None:
        wanted = step.wanted
        family = "local6" if ip_address(wanted.local).version == IPV6 else "local"
        await self._ip.link(
            "add",
            ifname=step.name,
            kind=VXLAN,
            group=MARK,
            mtu=wanted.mtu,
            vxlan_id=wanted.vni,
            vxlan_port=wanted.port,
            vxlan_learning=1,
            **{f"vxlan_{family}": wanted.local},
        )

    async def _settle(self, step: Settle) -> None:
        """Disable addresses and ARP, join the bridge, then set up: it never gets an address."""
        quiet = {"attrs": [["AF_INET6", {"attrs": [["IFLA_INET6_ADDR_GEN_MODE", _NO_ADDRESS]]}]]}
        try:
            await self._ip.link("set", index=step.index, IFLA_AF_SPEC=quiet)
        except NetlinkError as error:  # a kernel without IPv6
            log.debug("no IPv6 setting", extra={"device": step.name, "error": str(error)})
        await self._ip.link("set", index=step.index, mtu=step.mtu, master=step.master)
        flags = _UP | _NO_ARP
        await self._ip.link("set", index=step.index, flags=flags, change=flags)

    async def _entries(self, device: NetworkDevice) -> list[ForwardingEntry]:
        dump = await self._ip.fdb("dump", ifindex=device.index)
        return [
            ForwardingEntry(device.index, str(each.get("lladdr")), str(each.get("dst")))
            async for each in dump
            if each["flags"] & _SELF and each.get("dst")
        ]


def _device(link: Any) -> NetworkDevice:
    """Return the device of a link message."""
    info, flags = link.get("linkinfo"), int(link["flags"])
    kind = "" if info is None else str(info.get("kind") or "")
    data = info.get("data") if kind == VXLAN else None

    def attribute(name: str) -> Any:
        return None if data is None else data.get(name)

    return NetworkDevice(
        index=int(link["index"]),
        name=str(link.get("ifname")),
        kind=kind,
        group=int(link.get("group") or 0),
        mtu=int(link.get("mtu") or 0),
        is_up=bool(flags & _UP),
        answers_arp=not flags & _NO_ARP,
        master=int(link.get("master") or 0),
        vni=int(attribute("vxlan_id") or 0),
        local=str(attribute("vxlan_local") or attribute("vxlan_local6") or ""),
        port=int(attribute("vxlan_port") or 0),
    )
