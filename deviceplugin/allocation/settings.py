"""The operator's settings of what containers get with their devices."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, Literal

import msgspec

Strategy = Literal["cdi-cri", "envvar", "volume-mounts", "device-specs"]
STRATEGIES: Final = ("cdi-cri", "envvar", "volume-mounts", "device-specs")


class AllocationSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """The section ``allocation``.

    Strategies, by which NVIDIA's GPUs reach a container:

    ========================  ==============================================================
    ``cdi-cri`` (default)     CDI names; the container runtime does the rest (kubelet 1.28 on)
    ``envvar``                NVIDIA_VISIBLE_DEVICES, for the NVIDIA container runtime
    ``volume-mounts``         a mount for each device, for that runtime where it does not trust
                              environment variables
    ``device-specs``          device files; needs no special runtime, brings no driver libraries
    ========================  ==============================================================

    AMD's GPUs and NICs reach it by CDI names or by device files.
    """

    #: how NVIDIA's GPUs reach a container; see the table
    device_list_strategy: Strategy = "cdi-cri"
    #: folder of the CDI specs
    cdi_folder: str = "/var/run/cdi"
    #: folder on the host in which the MPS control daemon has its pipes
    mps_root: str = "/run/nvidia/mps"
    #: file that is mounted, and named by NCCL_TOPO_FILE, for containers with GPUs; "" for none
    nccl_topology_file: str = ""
    #: whether NCCL_IB_HCA names a container's NICs
    nccl_hcas: bool = False
    #: whether replicas of a pod are on different devices while there are any, or fill one device
    #: after the other
    shares: Literal["distributed", "packed"] = "distributed"


def problems(settings: AllocationSettings) -> Iterator[str]:
    """Yield a line for each value that is not allowed: field, value, what is allowed."""
    for field, path in (
        ("cdiFolder", settings.cdi_folder),
        ("mpsRoot", settings.mps_root),
        ("ncclTopologyFile", settings.nccl_topology_file),
    ):
        if path and not PurePosixPath(path).is_absolute():
            yield f"{field}: {path} is no absolute path; write it from the root"
    if not settings.cdi_folder:
        yield "cdiFolder: is empty; the default is /var/run/cdi, which container runtimes read"
