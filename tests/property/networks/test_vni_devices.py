"""Devices from any state to the wanted one, with the agent killed after any step.

The kernel is that of tests/support/networks/kerneldevices.py.
"""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.networks.kerneldevices import Kernel

from muster.kube.kinds.jobnetworks import bridge_name, vxlan_name
from muster.vniagent.agent import PASSES
from muster.vniagent.desired import (
    ANY_MAC,
    MARK,
    ForwardingEntry,
    NetworkDevice,
    Present,
    WantedNetwork,
    held,
    ready,
    steps,
)

VNIS = [7, 8, 16777215]
ADDRESSES = ["10.0.0.2", "10.0.0.3", "10.0.0.4"]


@st.composite
def wants(draw: st.DrawFn) -> dict[int, WantedNetwork]:
    chosen = draw(st.sets(st.sampled_from(VNIS)))
    remotes = st.frozensets(st.sampled_from(ADDRESSES))
    mtus = st.sampled_from([1450, 8950])
    return {vni: WantedNetwork(vni, draw(mtus), 4789, "10.0.0.1", draw(remotes)) for vni in chosen}


NAMES = [bridge_name(v) for v in VNIS] + [vxlan_name(v) for v in VNIS] + ["eth0", "mvb", "mvx12x"]


@st.composite
def nodes(draw: st.DrawFn) -> Present:
    """Draw a node with anything on it, ours or not, whole or half made."""
    devices: list[NetworkDevice] = []
    for index, name in enumerate(draw(st.lists(st.sampled_from(NAMES), unique=True)), 1):
        master = draw(st.sampled_from([0, *(d.index for d in devices if d.kind == "bridge")]))
        device = NetworkDevice(
            index=index,
            name=name,
            kind=draw(st.sampled_from(["bridge", "vxlan", "veth", ""])),
            group=draw(st.sampled_from([MARK, MARK, 0, 5])),
            mtu=draw(st.sampled_from([1450, 1500])),
            is_up=draw(st.booleans()),
            master=master,
            vni=draw(st.sampled_from([7, 8])),
            local=draw(st.sampled_from(["10.0.0.1", "10.0.0.9"])),
            port=4789,
        )
        devices.append(device)
    entries = [
        ForwardingEntry(device.index, draw(st.sampled_from([ANY_MAC, "02:00:00:00:00:01"])), remote)
        for device in devices
        if device.kind == "vxlan" and device.group == MARK
        for remote in draw(st.sets(st.sampled_from([*ADDRESSES, "10.0.0.99"])))
    ]
    return Present(tuple(devices), tuple(entries))


def work(kernel: Kernel, wanted: dict[int, WantedNetwork], limit: int | None = None) -> int:
    """Do as the agent does, killed after so many steps; return how many were done."""
    done = 0
    for _ in range(PASSES):
        todo, _clashes = steps(wanted, kernel.present())
        for step in todo:
            if done == limit:
                return done
            kernel.do(step)
            done += 1
    return done


def foreign(present: Present) -> dict[str, NetworkDevice]:
    return {d.name: replace(d, master=0) for d in present.devices if d.group != MARK}


@given(nodes(), wants(), st.integers(0, 6))
def test_whatever_is_there_and_wherever_it_is_killed_the_wanted_devices_stand_in_the_end(
    present: Present, wanted: dict[int, WantedNetwork], killed_after: int
) -> None:
    kernel = Kernel(present)
    work(kernel, wanted, killed_after)
    work(kernel, wanted)
    todo, clashes = steps(wanted, kernel.present())
    assert todo == []
    in_the_way = {clash.vni for clash in clashes}
    assert set(ready(wanted, kernel.present())) == wanted.keys() - in_the_way
    for vni in wanted.keys() - in_the_way:
        by_name = {d.name: d for d in kernel.devices.values()}
        bridge, vxlan = by_name[bridge_name(vni)], by_name[vxlan_name(vni)]
        assert (vxlan.vni, vxlan.master, vxlan.is_up) == (vni, bridge.index, True)
        floods = {e.remote for e in kernel.entries if e.index == vxlan.index and e.mac == ANY_MAC}
        assert floods == wanted[vni].remotes


@given(nodes(), wants())
def test_nothing_of_others_is_changed_or_removed(
    present: Present, wanted: dict[int, WantedNetwork]
) -> None:
    """But the bridges that the CNI plugin has made for a wanted network."""
    kernel = Kernel(present)
    work(kernel, wanted)
    after = foreign(kernel.present())
    adopted = {bridge_name(vni) for vni in wanted}
    for name, device in foreign(present).items():
        if name in after:
            assert after[name] == device
        else:
            assert name in adopted
            assert (device.kind, device.group) == ("bridge", 0)


@given(nodes(), wants())
def test_what_nobody_wants_any_more_is_gone_without_a_rest(
    present: Present, wanted: dict[int, WantedNetwork]
) -> None:
    kernel = Kernel(present)
    work(kernel, wanted)
    work(kernel, {})
    assert held(kernel.present()) == set()


@given(wants())
def test_what_stands_is_left_alone(wanted: dict[int, WantedNetwork]) -> None:
    kernel = Kernel(Present())
    work(kernel, wanted)
    assert work(kernel, wanted) == 0
