"""Backends under the contract suite: how to make one, and how to make something happen to it.

To add one, write a function that returns a ``Rig`` and put it into ``CASES``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from support.devices import nvmlmachine, realcard
from support.devices.sysfstree import XGMI, SysfsTree

from deviceplugin.backends import amd, rdma
from deviceplugin.backends.backend import Backend
from deviceplugin.backends.jointbackend import JointBackend
from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.faults import Faults
from deviceplugin.backends.simulated.machine import load
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    InventoryChanged,
    Signal,
    Xid,
)
from deviceplugin.tools import faultswitch

Act = Callable[[], None]


@dataclass(frozen=True)
class Rig:
    """A way to make a backend of one kind, again and again, on the same devices."""

    make: Callable[[], Backend]
    #: Things that can be done to the devices, in this order, each with the kinds of signals that
    #: come of it, in their order.
    happen: Sequence[tuple[Act, Sequence[type[Signal]]]] = field(default=())


def simulated(folder: Path) -> Rig:
    """A DGX H100 with MIG instances on every GPU."""
    control = folder / "faults.yaml"

    def edit(change: Callable[[Faults], Faults]) -> Act:
        return lambda: faultswitch.write(control, change(faultswitch.read(control)))

    def make() -> Backend:
        return Simulated(
            load("dgx-h100/all-balanced"), node="n", control=control, poll_seconds=0.005
        )

    return Rig(
        make,
        (
            (edit(lambda f: faultswitch.with_xid(f, "0", 79)), [Xid]),
            (edit(lambda f: faultswitch.with_xid(f, "0", 79)), [Xid]),
            (edit(lambda f: faultswitch.with_fields(f, {"lost": "gone"}, gpu="3")), [DeviceLost]),
            (edit(lambda f: faultswitch.without(f, gpu="3")), [InventoryChanged]),
            (
                edit(lambda f: faultswitch.with_fields(f, {"down": [1]}, nic="mlx5_0")),
                [InventoryChanged],
            ),
            (
                edit(lambda f: faultswitch.with_fields(f, {"absent": True}, gpu="7")),
                [InventoryChanged],
            ),
            (edit(lambda f: faultswitch.with_fields(f, {"down": "driver"})), [BackendDown]),
            (edit(lambda f: faultswitch.without(f, backend=True)), [BackendUp]),
        ),
    )


def nvml(folder: Path) -> Rig:
    """Two H100 behind the stub of NVML; the first is cut once anything happened to it."""
    machine = nvmlmachine.Machine(folder, nvmlmachine.build(folder / "library"))
    machine.say(nvmlmachine.h100(0), nvmlmachine.h100(1))
    machine.say(*nvmlmachine.on_switches(0), *nvmlmachine.on_switches(1))
    whole = 0xFFFFFFFF  # no MIG instance in particular

    def say(*statements: str) -> Act:
        return lambda: machine.say(*statements)

    def unsay(statement: str) -> Act:
        return lambda: machine.unsay(statement)

    hang = "hang nvmlEventSetWait_v2"
    return Rig(
        lambda: machine.backend(replace(nvmlmachine.BRIEF, silence_s=3.0, lost_s=3600.0)),
        (
            (say(f"xid 1 0 79 {whole} {whole}"), [Xid]),
            (say(f"xid 2 1 94 {whole} {whole}"), [Xid]),
            (say(f"event 3 1 {0x4000} 0"), [DeviceLost]),
            (say("system 1 1"), [InventoryChanged]),
            (say(hang), [BackendDown]),
            (unsay(hang), [BackendUp, InventoryChanged]),
            (say(f"xid 4 0 79 {whole} {whole}"), [Xid]),
        ),
    )


def nvml_real(_folder: Path) -> Rig:
    """The NVIDIA GPUs that this machine has; a program on the first one makes an error."""
    realcard.skip_without_gpu()
    return Rig(NvmlBackend, ((realcard.fault, [Xid]), (realcard.fault, [Xid])))


def sysfs_rdma(folder: Path) -> Rig:
    """Two NICs in a folder that looks like /sys."""
    tree = SysfsTree(folder)
    tree.nic("mlx5_0", "0000:18:00.0")
    tree.nic("mlx5_1", "0000:9a:00.0", above="pci0000:97/0000:97:01.0", numa=1)
    return Rig(
        lambda: rdma.backend(tree.root, poll_seconds=0.005),
        (
            (lambda: tree.port("mlx5_0", 1, "1: DOWN"), [InventoryChanged]),
            (lambda: tree.port("mlx5_0", 1, "4: ACTIVE"), [InventoryChanged]),
            (lambda: tree.remove("class/infiniband/mlx5_1/device"), [InventoryChanged]),
        ),
    )


def sysfs_amd(folder: Path) -> Rig:
    """Two GPUs with an XGMI link."""
    tree = SysfsTree(folder)
    tree.amd(1, "0000:05:00.0", unique_id=1, minor=128, links={2: XGMI})
    behind = "pci0000:18/0000:18:01.1"
    second = tree.amd(2, "0000:2b:00.0", unique_id=2, minor=136, above=behind, links={1: XGMI})

    def partition() -> None:
        tree.write(str(second.relative_to(tree.root) / "current_compute_partition"), "CPX")
        tree.generation(3)

    return Rig(
        lambda: amd.backend(tree.root, poll_seconds=0.005),
        (
            (partition, [InventoryChanged]),
            (lambda: tree.remove("devices/pci0000:00"), [DeviceLost]),
        ),
    )


def together(folder: Path) -> Rig:
    """A simulated machine without NICs, and NICs from sysfs."""
    control = folder / "faults.yaml"
    nics = sysfs_rdma(folder / "sys")

    def make() -> Backend:
        gpus = Simulated(load("pcie-t4"), node="n", control=control, poll_seconds=0.005)
        return JointBackend([gpus, nics.make()])

    def xid() -> None:
        faultswitch.write(control, faultswitch.with_xid(faultswitch.read(control), "0", 79))

    return Rig(make, ((xid, [Xid]), *nics.happen, (xid, [Xid])))


CASES: dict[str, Callable[[Path], Rig]] = {
    "amd": sysfs_amd,
    "nvml": nvml,
    "nvml-real": nvml_real,
    "rdma": sysfs_rdma,
    "simulated": simulated,
    "together": together,
}
