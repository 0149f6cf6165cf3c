"""A machine as data: the devices of a node with such hardware (``deviceplugin/machines``).

::

    machines/dgx-h100.yaml ──► Machine ──► simulatedinventory (node's name) ──► Inventory
    one of your own        ──►    │
                                  └─ its layout by name: "dgx-h100/all-balanced"

Everything that differs between two nodes with the same machine (UUIDs, GUIDs) is derived from
the node's name, so it stays the same over restarts and no file has to list it.
"""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from deviceplugin.backends.simulated import mig as simulatedmig
from muster.observability import configfile
from muster.observability.configfile import ConfigError

_FOLDER: Final = "machines"
_SUFFIX: Final = ".yaml"
_CONTROLLER_3D: Final = "0x030200"
ENGINES: Final = ("copy", "decoder", "encoder", "jpeg", "ofa")  # as MigInstance names them

Count = Annotated[int, msgspec.Meta(ge=0)]
Address = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")]
Hex4 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}$")]
FabricWord = Literal["not-supported", "not-started", "in-progress", "completed"]


class MachineStruct(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """Base of the structs; carries the encoding rules only."""


class At(MachineStruct, frozen=True):
    """Where a device sits."""

    address: Address
    #: NUMA node; -1: not known
    numa: Annotated[int, msgspec.Meta(ge=-1)]
    #: the bridges above it, the host bridge first, separated by slashes
    above: str


class NicAt(At, frozen=True):
    """One NIC, by the name of its verbs device; ``kind`` is one of ``nicKinds``."""

    #: of the verbs device
    name: str
    #: a key of ``nicKinds``
    kind: str
    #: name of the network interface
    interface: str = ""


class SimulatedTemperature(MachineStruct, frozen=True):
    """In °C: when idle, and where the GPU slows itself down."""

    idle: Count
    slowdown: Count


class Power(MachineStruct, frozen=True):
    """In W: when idle, and the most it takes."""

    idle: Count
    limit: Count


class Measures(MachineStruct, frozen=True):
    """What the instances of one profile have, as the driver of a real GPU reports it."""

    memory_mib: Count = msgspec.field(name="memoryMiB")
    multiprocessors: Count


class Cutting(MachineStruct, frozen=True):
    """What an instance has: ``multiprocessors`` per compute slice, engines by profile's shape.

    Profiles and where they stand are those of the GPU's model in
    ``muster/workloads/devices/mig.yaml``. ``measured``: exact figures by the profile's name,
    where a real GPU was read; the others have their share of the whole.
    """

    #: of one compute slice
    multiprocessors: Count
    #: profile → engine → how many an instance has
    engines: dict[str, dict[str, Count]]
    measured: dict[str, Measures] = {}


class GpuKind(MachineStruct, frozen=True):
    """What all GPUs of the machine have in common."""

    model: str
    memory_mib: Count = msgspec.field(name="memoryMiB")
    temperature: SimulatedTemperature
    power: Power
    #: PCI device and vendor ("0x233010DE")
    device_id: Annotated[str, msgspec.Meta(pattern=r"^0x[0-9A-F]{8}$")]
    #: CUDA compute capability
    compute: tuple[Count, Count] = (0, 0)
    #: PCI class, as in sysfs
    pci_class: Annotated[str, msgspec.Meta(pattern=r"^0x[0-9a-f]{6}$")] = _CONTROLLER_3D
    #: MHz
    sm_clock: Count = 0
    #: partition of an AMD GPU
    partition: str = ""
    #: None where the GPUs cannot be cut
    mig: Cutting | None = None


class LinkKind(MachineStruct, frozen=True):
    """NVLink or XGMI: links of each GPU to switches, or of each pair of GPUs."""

    #: links of each GPU to switches
    to_switches: Count = 0
    #: links of each pair of GPUs
    between_all: Count = 0


class FabricKind(MachineStruct, frozen=True):
    """NVLink fabric. ``across: rack``: the nodes of a rack are one NVLink cluster."""

    state: FabricWord
    #: which nodes are one NVLink cluster
    across: Literal["node", "rack"] = "node"
    clique: Count = 0


class Versions(MachineStruct, frozen=True):
    """Versions of the GPU driver."""

    version: str
    cuda: str = ""


class NicKind(MachineStruct, frozen=True):
    """What NICs of a kind share. ``vendorId`` and ``deviceId``: PCI, in hex."""

    model: str
    firmware: str
    vendor_id: Hex4
    device_id: Hex4
    driver: str
    link_layer: Literal["InfiniBand", "Ethernet"]
    rate_gbps: Count


class Machine(MachineStruct, frozen=True):
    """A machine and all its devices."""

    version: Literal[1]
    name: str
    #: product name in DMI
    product: str
    vendor: Literal["nvidia", "amd"]
    driver: Versions
    gpu: GpuKind
    gpus: tuple[At, ...]
    #: how all GPUs may be cut, by name
    layouts: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    #: name of the layout that the GPUs are cut by at first; "" for none
    layout: str = ""
    links: LinkKind = LinkKind()
    fabric: FabricKind | None = None
    #: the kinds of NICs, by a name of the file's own
    nic_kinds: dict[str, NicKind] = msgspec.field(default_factory=dict)
    nics: tuple[NicAt, ...] = ()

    def cut(self) -> tuple[simulatedmig.Slot, ...]:
        """Return the (profile, start) pairs that each GPU is cut into at first."""
        return simulatedmig.slots(self.layouts[self.layout]) if self.layout else ()


def names() -> tuple[str, ...]:
    """Return the machines that come with Muster."""
    files = resources.files("deviceplugin").joinpath(_FOLDER).iterdir()
    return tuple(sorted(f.name.removesuffix(_SUFFIX) for f in files if f.name.endswith(_SUFFIX)))


def load(name: str) -> Machine:
    """Return a machine: ``NAME``, ``NAME/LAYOUT`` or the path of a file. Raises ``ConfigError``."""
    if name.endswith(_SUFFIX):
        return configfile.load(Path(name), Machine, problems)
    stem, _, layout = name.partition("/")
    if stem not in names():
        raise ConfigError(
            f"simulated machine {name!r}: is not known; allowed are {', '.join(names())}, one of "
            f"them with a layout (dgx-h100/all-balanced), or the path of a {_SUFFIX} file"
        )
    data = resources.files("deviceplugin").joinpath(_FOLDER, stem + _SUFFIX).read_bytes()
    machine = configfile.parse(data, Machine, problems, source=stem + _SUFFIX)
    return with_layout(machine, layout) if layout else machine


def with_layout(machine: Machine, layout: str) -> Machine:
    """Return the machine with its GPUs cut. Raises ``ConfigError``."""
    if layout not in machine.layouts:
        allowed = ", ".join(machine.layouts) or "none: its GPUs cannot be cut"
        raise ConfigError(f"{machine.name}: layout {layout!r}: is not known; allowed are {allowed}")
    return msgspec.structs.replace(machine, layout=layout)


# --- what is not allowed ------------------------------------------------------------------


def problems(machine: Machine) -> Iterator[str]:
    """Yield a line for each thing in the file that contradicts itself."""
    yield from _twice("gpus: address", [gpu.address for gpu in machine.gpus])
    yield from _twice("nics: address", [nic.address for nic in machine.nics])
    yield from _twice("nics: name", [nic.name for nic in machine.nics])
    for index, nic in enumerate(machine.nics):
        if nic.kind not in machine.nic_kinds:
            allowed = ", ".join(machine.nic_kinds)
            yield f"nics[{index}].kind: {nic.kind!r} is not one of nicKinds; allowed are {allowed}"
    for where, at in _places(machine):
        if not at.above.startswith("pci") or "" in at.above.split("/"):
            yield f"{where}.above: {at.above!r} is no path; write 'pci0000:15/0000:15:01.0'"
    yield from _of_engines(machine)
    yield from _of_layouts(machine)


def _of_engines(machine: Machine) -> Iterator[str]:
    for shape, engines in (machine.gpu.mig.engines if machine.gpu.mig else {}).items():
        for name in engines:
            if name not in ENGINES:
                where = f"gpu.mig.engines.{shape}: {name!r}"
                yield f"{where} is no engine; allowed are {', '.join(ENGINES)}"


def _places(machine: Machine) -> Iterator[tuple[str, At]]:
    yield from ((f"gpus[{index}]", at) for index, at in enumerate(machine.gpus))
    yield from ((f"nics[{index}]", at) for index, at in enumerate(machine.nics))


def _of_layouts(machine: Machine) -> Iterator[str]:
    profiles = simulatedmig.profiles(machine.gpu.model) if machine.gpu.mig else ()
    if machine.gpu.mig and not profiles:
        yield f"gpu.model: {machine.gpu.model!r} has no MIG profiles in the table mig.yaml"
    known = [profile.name for profile in profiles]
    for name in machine.gpu.mig.measured if machine.gpu.mig else ():
        if name not in known:
            allowed = ", ".join(known)
            yield f"gpu.mig.measured: {name!r} is no profile of this GPU; allowed are {allowed}"
    for name, listed in machine.layouts.items():
        problem = simulatedmig.misfit(profiles, listed)
        if problem:
            yield f"layouts.{name}: {problem}"
    if machine.layout and machine.layout not in machine.layouts:
        allowed = ", ".join(machine.layouts)
        yield f"layout: {machine.layout!r} is not one of layouts; allowed are {allowed}"


def _twice(what: str, values: list[str]) -> Iterator[str]:
    for value in sorted({value for value in values if values.count(value) > 1}):
        yield f"{what}: {value} is there twice"
