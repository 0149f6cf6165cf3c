"""A node's network devices in memory: as much of the kernel as the agent's steps need.

It makes, changes and deletes what a step says, and frees the ports of a bridge that goes.
"""

from dataclasses import replace

from muster.vniagent.desired import (
    ANY_MAC,
    MARK,
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


class Kernel:
    """The devices of a node; ``do`` takes one step."""

    def __init__(self, present: Present) -> None:
        self.devices = {device.index: device for device in present.devices}
        self.entries = set(present.entries)

    def present(self) -> Present:
        entries = [e for e in self.entries if e.index in self.devices]
        return Present(tuple(self.devices.values()), tuple(entries))

    def do(self, step: Step) -> None:
        match step:
            case MakeBridge(_, name, mtu):
                self._make(NetworkDevice(0, name, "bridge", MARK, mtu))
            case MakeVxlan(name, w):
                made = NetworkDevice(
                    0, name, "vxlan", MARK, w.mtu, vni=w.vni, local=w.local, port=w.port
                )
                self._make(made)
            case Adopt(index, _):
                self.devices[index] = replace(self.devices[index], group=MARK)
            case Settle(index, _, mtu, master):
                assert not master or self.devices[master].kind == "bridge"
                device = replace(self.devices[index], mtu=mtu, master=master)
                self.devices[index] = replace(device, is_up=True, answers_arp=False)
            case AddRemote(index, remote):
                self.entries.add(ForwardingEntry(index, ANY_MAC, remote))
            case DropEntry(entry):
                self.entries.remove(entry)
            case Remove(index, _):
                del self.devices[index]
                freed = [d for d in self.devices.values() if d.master == index]
                self.devices |= {d.index: replace(d, master=0) for d in freed}

    def _make(self, device: NetworkDevice) -> None:
        assert device.name not in {d.name for d in self.devices.values()}
        index = max(self.devices, default=0) + 1
        self.devices[index] = replace(device, index=index)


class KernelLinks:
    """Such devices in place of ``muster.vniagent.links.Links``, where no test is about packets."""

    def __init__(self, mtu: int = 1500) -> None:
        self.kernel = Kernel(Present())
        self._mtu = mtu

    async def read(self) -> Present:
        return self.kernel.present()

    async def underlay_mtu(self, _address: str) -> int | None:
        return self._mtu

    async def apply(self, step: Step) -> None:
        self.kernel.do(step)
