"""The node's CDI specs: what a container runtime does for ``nvidia.com/gpu=GPU-…``. Pure.

One file a kind, all of it written anew from the inventory (CDI SPEC.md, version 0.6.0; read by
containerd from 1.7 and CRI-O from 1.23)::

    {"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu",
     "devices": [{"name": "GPU-8a…", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}},
                 {"name": "all", …}],
     "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"],
                        "deviceNodes": [{"path": "/dev/nvidiactl"}, …]}}

Names are UUIDs and names of verbs devices: the same after a reboot, so that a container that is
started again finds its devices. ``void`` keeps NVIDIA's runtime from adding what an image asks
for by itself (``all``, usually).

Driver libraries are not in it. Where NVIDIA's toolkit has written a spec of the same devices
(``nvidia-ctk cdi generate``), that one has them; two specs of one name would make the runtime
refuse both, so such devices are left out here (``without``).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from deviceplugin.model.inventory import Gpu, Inventory, Vendor

VERSION: Final = "0.6.0"
NVIDIA: Final = "nvidia.com/gpu"
AMD: Final = "amd.com/gpu"
RDMA: Final = "muster.dev/rdma"
KINDS: Final = (NVIDIA, AMD, RDMA)
ALL: Final = "all"
_VOID: Final = "NVIDIA_VISIBLE_DEVICES=void"
_NVIDIA_FILE: Final = "/dev/nvidia"
_NO_FILES: Final = "MUSTER_DEVICE_FILES=none"
"""Of devices without files, which are simulated: CDI does not allow empty edits."""
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_.:-]")

Allowed = Callable[[str], bool]


class CdiDeviceFile(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A device file."""

    path: str
    permissions: str = ""


class Edits(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is done to a container."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[CdiDeviceFile, ...] = ()


class CdiDevice(msgspec.Struct, frozen=True, rename="camel"):
    """One name."""

    name: str
    container_edits: Edits


class Spec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One file."""

    cdi_version: str
    kind: str
    devices: tuple[CdiDevice, ...]
    container_edits: Edits = Edits()


def device_name(name: str) -> str:
    """Return a name as CDI allows it: letters and digits, and ``_-.:`` between them."""
    return _STRANGE.sub("_", name).strip("_-.:") or "device"


def qualified(kind: str, name: str) -> str:
    """Return the name by which a container runtime is asked for a device."""
    return f"{kind}={device_name(name)}"


def file_name(kind: str) -> str:
    """Return the name of a kind's file."""
    return f"muster-{kind.replace('/', '-')}.json"


def specs(inventory: Inventory, without: Allowed = lambda _name: False) -> dict[str, Spec]:
    """Return the specs by kind, only of kinds that the node has.

    ``without``: names (``nvidia.com/gpu=…``) that another's spec has.
    """
    found: dict[str, Spec] = {}
    for kind, devices, shared in (
        (NVIDIA, _gpus(inventory, Vendor.NVIDIA), shared_files(inventory, Vendor.NVIDIA)),
        (AMD, _gpus(inventory, Vendor.AMD), shared_files(inventory, Vendor.AMD)),
        (RDMA, _nics(inventory), inventory.rdma_files),
    ):
        mine = {name: files for name, files in devices if not without(qualified(kind, name))}
        if mine:
            found[kind] = _spec(kind, mine, shared, without)
    return found


def shared_files(inventory: Inventory, vendor: Vendor) -> tuple[str, ...]:
    """Return the device files that every container with a GPU of a vendor needs."""
    ours = vendor is Vendor.NVIDIA
    return tuple(f for f in inventory.gpu_files if f.startswith(_NVIDIA_FILE) is ours)


def encode(spec: Spec) -> bytes:
    """Return a spec's file; the same spec gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(spec), indent=2) + b"\n"


def names(data: bytes) -> frozenset[str]:
    """Return the qualified names in a file, JSON or YAML; none where it is no spec."""
    try:
        read = msgspec.yaml.decode(data, type=_Named)
    except (msgspec.MsgspecError, RecursionError):
        return frozenset()
    return frozenset(f"{read.kind}={device.name}" for device in read.devices)


class _NamedDevice(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    kind: str = ""
    devices: tuple[_NamedDevice, ...] = ()


def _spec(
    kind: str, devices: dict[str, tuple[str, ...]], shared: tuple[str, ...], without: Allowed
) -> Spec:
    listed = [CdiDevice(device_name(name), _edits(files)) for name, files in devices.items()]
    if not without(f"{kind}={ALL}"):
        everything = tuple(dict.fromkeys(file for files in devices.values() for file in files))
        listed.append(CdiDevice(ALL, _edits(everything)))
    env = (_VOID,) if kind == NVIDIA else ()
    return Spec(VERSION, kind, tuple(listed), Edits(env, _nodes(shared)))


def _edits(files: tuple[str, ...]) -> Edits:
    return Edits(device_nodes=_nodes(files)) if files else Edits(env=(_NO_FILES,))


def _nodes(files: Iterable[str]) -> tuple[CdiDeviceFile, ...]:
    return tuple(CdiDeviceFile(path, "rw") for path in files)


def _gpus(inventory: Inventory, vendor: Vendor) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield GPUs and their MIG instances with their device files."""
    for gpu in inventory.gpus:
        if gpu.vendor is vendor:
            yield gpu.uuid, gpu.files
            yield from _instances(gpu)


def _instances(gpu: Gpu) -> Iterator[tuple[str, tuple[str, ...]]]:
    for one in gpu.mig.instances if gpu.mig is not None else ():
        yield one.uuid, (*gpu.files, *one.files)


def _nics(inventory: Inventory) -> Iterator[tuple[str, tuple[str, ...]]]:
    for nic in inventory.nics:
        yield nic.name, nic.files
