"""What the plugin and NVML's child process say to each other: msgpack in frames.

    plugin ──Look | Measure | SwitchMig | CutMig──────────────────────────► child
    plugin ◄──Ready, then Beat…, Looked | Measured | Done | Failed,──────── child
              XidSeen | GpuGone | DriverMoved, at the end perhaps Broken

A frame is its length in four bytes, the greatest first, and one message. Facts are as NVML
tells them; ``nvmlinventory`` makes of them what the plugin calls an inventory, so that the
facts of a real machine, once kept, test everything above the driver.

Both processes import this module, and the child's memory is counted: keep it small.
"""

import struct
from typing import Final

import msgspec

from deviceplugin.model.signals import GpuReading

_LENGTH: Final = struct.Struct(">I")
LENGTH_BYTES: Final = _LENGTH.size
MOST_BYTES: Final = 16 * 1024**2  # an inventory of 16 GPUs cut in 7 is 60 kB


class LinkFacts(msgspec.Struct, frozen=True):
    """One NVLink that is there. ``remote``: what it ends at, as nvml.h numbers it."""

    link: int
    active: bool
    remote: int = 255  # NVML_NVLINK_DEVICE_TYPE_UNKNOWN
    pci: str = ""
    """PCI address of the other end; empty where the driver does not tell."""


class ProfileFacts(msgspec.Struct, frozen=True):
    """A GPU instance profile. ``kind``: NVML_GPU_INSTANCE_PROFILE_…; ``id``: the GPU's own."""

    kind: int
    id: int
    compute_slices: int
    most: int
    memory_mib: int
    starts: tuple[int, ...] = ()
    """Empty while MIG is off: most drivers tell places only once it is on."""
    size: int = 0
    name: str = ""
    """The driver's own name for it ("MIG 1g.10gb"), where it tells one."""


class InstanceFacts(msgspec.Struct, frozen=True):
    """A MIG device. ``start`` is -1 where we may not ask (no privilege)."""

    uuid: str
    gpu_instance: int
    compute_instance: int
    profile: int = -1
    start: int = -1
    size: int = 0
    memory_mib: int = 0
    multiprocessors: int = 0
    gpu_slices: int = 0
    compute_slices: int = 0
    engines: dict[str, int] = {}


class MigFacts(msgspec.Struct, frozen=True):
    """MIG mode now and after the next reset, and what is cut."""

    enabled: bool
    pending: bool
    profiles: tuple[ProfileFacts, ...] = ()
    instances: tuple[InstanceFacts, ...] = ()


class FabricFacts(msgspec.Struct, frozen=True):
    """nvmlGpuFabricInfoV_t. ``summary`` is None before version 3."""

    state: int
    status: int
    cluster: str
    clique: int
    mask: int
    summary: int | None = None


class GpuFacts(msgspec.Struct, frozen=True):
    """One GPU. ``lost``: why it does not answer; then only ``index`` is sure."""

    index: int
    uuid: str = ""
    name: str = ""
    pci: str = ""
    """As NVML writes it, eight digits of domain ("00000000:1B:00.0")."""
    device_id: int = 0
    memory_bytes: int = 0
    minor: int = -1
    compute: tuple[int, int] = (0, 0)
    links: tuple[LinkFacts, ...] = ()
    mig: MigFacts | None = None
    fabric: FabricFacts | None = None
    lost: str = ""


class Look(msgspec.Struct, frozen=True, tag=True):
    """Ask what there is."""

    id: int


class Measure(msgspec.Struct, frozen=True, tag=True):
    """Ask for a reading of every GPU."""

    id: int


class SwitchMig(msgspec.Struct, frozen=True, tag=True):
    """Switch MIG mode of a GPU."""

    id: int
    gpu: str
    enabled: bool


class Cut(msgspec.Struct, frozen=True):
    """An instance to make, by the GPU's own id of its profile."""

    profile: int
    start: int
    size: int


class CutMig(msgspec.Struct, frozen=True, tag=True):
    """Remove MIG devices by UUID, then make others, all or none."""

    id: int
    gpu: str
    remove: tuple[str, ...]
    make: tuple[Cut, ...]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """NVML answers and events are registered: what happens from now on is told."""


class Beat(msgspec.Struct, frozen=True, tag=True):
    """A call of NVML has returned; without any for a while, the driver hangs."""


class Looked(msgspec.Struct, frozen=True, tag=True):
    """The answer to ``Look``. ``cuda``: as NVML numbers it (12040 is 12.4)."""

    id: int
    driver: str
    cuda: int
    gpus: tuple[GpuFacts, ...]


class Measured(msgspec.Struct, frozen=True, tag=True):
    """The answer to ``Measure``. ``links_up``: active NVLinks by UUID, where GPUs have any."""

    id: int
    readings: tuple[GpuReading, ...]
    links_up: dict[str, int]
    lost: dict[str, str]
    """Why, by UUID."""


class Done(msgspec.Struct, frozen=True, tag=True):
    """A change was made."""

    id: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """A request could not be met; the child goes on. ``code``: nvmlReturn_t, 0 if ours."""

    id: int
    code: int
    text: str


class XidSeen(msgspec.Struct, frozen=True, tag=True):
    """The driver reported an error."""

    uuid: str
    code: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


class GpuGone(msgspec.Struct, frozen=True, tag=True):
    """A GPU has ceased to answer."""

    uuid: str
    reason: str


class DriverMoved(msgspec.Struct, frozen=True, tag=True):
    """The driver was bound to a GPU or unbound: this process cannot see what is new."""

    reason: str


class Broken(msgspec.Struct, frozen=True, tag=True):
    """NVML as a whole does not answer; the child ends."""

    code: int
    text: str


Request = Look | Measure | SwitchMig | CutMig
Answer = Looked | Measured | Done | Failed
Told = Ready | Beat | XidSeen | GpuGone | DriverMoved | Broken
Message = Answer | Told

_encoder = msgspec.msgpack.Encoder()


def frame(message: Request | Message) -> bytes:
    """Return a message with its length before it."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def length(head: bytes) -> int:
    """Return how many bytes follow. Raises ``ValueError`` for what cannot be a length."""
    (said,) = _LENGTH.unpack(head)
    if said > MOST_BYTES:
        raise ValueError(f"a frame of {said} bytes; at most {MOST_BYTES} are sent")
    return int(said)
