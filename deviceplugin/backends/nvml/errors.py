"""What NVML's refusals mean for the operator of a node."""

from typing import Final

from deviceplugin.backends.nvml.link import Ending

# By nvmlReturn_t. Numbers, since importing pynvml for its names costs the plugin 4 MB.
_REMEDIES: Final = {
    4: "the device files are not readable: run privileged, or let the container runtime add them",
    9: "the kernel module is not loaded: install the driver, or see `dmesg` for why it is not",
    12: (
        "libnvidia-ml.so.1 is not found: install NVIDIA's driver on the node and either run under "
        "its container runtime (NVIDIA_DRIVER_CAPABILITIES=utility) or name the directory that "
        "has the library"
    ),
    18: (
        "the library's version is not the loaded kernel module's, as after an upgrade: reload the "
        "module or reboot the node; the plugin goes on by itself"
    ),
    999: "see `dmesg`; inside a container, the device cgroup may have lost /dev/nvidia*",
}


def remedy(ending: Ending) -> str:
    """Return why a child ended, and what is to be done where that is known."""
    what = _REMEDIES.get(ending.code)
    return f"{ending.reason}: {what}" if what else ending.reason
