"""What an operator says about what containers get with their devices."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final, Literal

import msgspec

Strategy = Literal["cdi-cri", "envvar", "volume-mounts", "device-specs"]
STRATEGIES: Final = ("cdi-cri", "envvar", "volume-mounts", "device-specs")


class AllocationSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """``device_list_strategy``: how NVIDIA's GPUs reach a container.

    ========================  ==============================================================
    ``cdi-cri`` (default)     CDI names; the container runtime does the rest (kubelet 1.28 on)
    ``envvar``                NVIDIA_VISIBLE_DEVICES, for the NVIDIA container runtime
    ``volume-mounts``         a mount for each device, for that runtime where it does not trust
                              environment variables
    ``device-specs``          device files; needs no special runtime, brings no driver libraries
    ========================  ==============================================================

    AMD's GPUs and NICs come as CDI names or as device files. ``cdi_folder``: of the specs.
    ``mps_root``: where the MPS control daemon keeps pipes on the host. ``nccl_topology_file``: is
    mounted and named by NCCL_TOPO_FILE for containers with GPUs. ``nccl_hcas``: name a
    container's NICs in NCCL_IB_HCA. ``shares``: of replicas, on different devices while there
    are any, or one device after the other.
    """

    device_list_strategy: Strategy = "cdi-cri"
    cdi_folder: str = "/var/run/cdi"
    mps_root: str = "/run/nvidia/mps"
    nccl_topology_file: str = ""
    nccl_hcas: bool = False
    shares: Literal["distributed", "packed"] = "distributed"


def problems(settings: AllocationSettings) -> Iterator[str]:
    """Yield a line for each thing that makes no sense: field, value, what is allowed."""
    for field, path in (
        ("cdiFolder", settings.cdi_folder),
        ("mpsRoot", settings.mps_root),
        ("ncclTopologyFile", settings.nccl_topology_file),
    ):
        if path and not PurePosixPath(path).is_absolute():
            yield f"{field}: {path} is no absolute path; write it from the root"
    if not settings.cdi_folder:
        yield "cdiFolder: is empty; the default is /var/run/cdi, which container runtimes read"
