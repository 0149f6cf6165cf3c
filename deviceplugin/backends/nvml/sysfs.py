"""What the kernel and NVIDIA's driver tell of GPUs in /sys, /proc and /dev, under a given root."""

from pathlib import Path
from typing import Final

from deviceplugin.backends import pci
from deviceplugin.backends.nvml.inventory import Surroundings
from deviceplugin.backends.nvml.vgpu import host_of
from deviceplugin.model.inventory import PciPlace, VgpuHost

_SHARED_FILES: Final = (
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
)
_PCI: Final = "sys/bus/pci/devices"
_PROC: Final = "proc/driver/nvidia"


def surroundings(root: Path) -> Surroundings:
    """Return what can be read under a root ("/" on a real machine)."""
    return Surroundings(
        place=lambda address: place(root, address),
        pci_class=lambda address: pci.text(root / _PCI / address / "class"),
        mig_files=lambda minor, gpu, compute: _mig_files(root, minor, gpu, compute),
        vgpu=lambda address: _vgpu(root / _PCI / address),
        machine=pci.text(root / "sys/class/dmi/id/product_name"),
        gpu_files=tuple(file for file in _SHARED_FILES if (root / file[1:]).exists()),
    )


def place(root: Path, address: str) -> PciPlace:
    """Return where a PCI device sits; without a path where sysfs does not show it."""
    return pci.place(root / _PCI / address) or PciPlace(address)


def _vgpu(device: Path) -> VgpuHost | None:
    """Return the host of a vGPU; None where it is none, or may not be read."""
    try:
        return host_of((device / "config").read_bytes())
    except OSError:
        return None


def bound_gpus(root: Path) -> frozenset[str]:
    """Return the PCI addresses that the driver drives now; empty where it does not say."""
    listed = root / _PROC / "gpus"
    return frozenset(entry.name for entry in listed.iterdir()) if listed.is_dir() else frozenset()


def _mig_files(root: Path, minor: int, gpu: int, compute: int) -> tuple[str, ...]:
    """Return the two files that open a MIG device: its GPU instance's and its own."""
    within = root / _PROC / f"capabilities/gpu{minor}/mig/gi{gpu}"
    named = (_capability(within / "access"), _capability(within / f"ci{compute}/access"))
    return tuple(file for file in named if file)


def _capability(access: Path) -> str:
    """Return the device file of a capability, whose minor number its /proc entry tells."""
    for line in pci.text(access).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "DeviceFileMinor":
            return f"/dev/nvidia-caps/nvidia-cap{value.strip()}"
    return ""
