"""Names of extended resources, and ids of devices.

NVIDIA's names are ``nvidia.com/gpu``, ``nvidia.com/mig-<profile>`` with "+" as ".", and the suffix
``.shared`` for resources that are renamed by default (NVIDIA/k8s-device-plugin internal/rm/rm.go,
api/config/v1).
"""

import re
from typing import Final

NVIDIA: Final = "nvidia.com"
GPU: Final = NVIDIA + "/gpu"
AMD_GPU: Final = "amd.com/gpu"
SHARED: Final = ".shared"  # DefaultSharedResourceNameSuffix of api/config/v1

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LONGEST_NAME: Final = 63  # of a qualified name, after the slash (apimachinery validation)
_LONGEST_PREFIX: Final = 253
_QUOTA: Final = "requests."  # a quota must be able to name it: apimachinery IsExtendedResourceName


def full(name: str) -> str:
    """Return the name with NVIDIA's prefix where it has none, as NVIDIA's plugin does."""
    return name if "/" in name else f"{NVIDIA}/{name}"


def of_profile(profile: str) -> str:
    """Return the resource of MIG instances of a profile ("1g.10gb+me")."""
    return f"{NVIDIA}/mig-{profile.replace('+', '.')}"


def of_partition(partition: str) -> str:
    """Return the resource of AMD GPUs of a partition ("cpx_nps4")."""
    return f"amd.com/{partition}"


def problem(name: str) -> str:
    """Return why a name cannot be an extended resource's; empty when it can.

    The kubelet refuses others when the plugin registers (IsExtendedResourceName).
    """
    prefix, slash, rest = name.partition("/")
    if not slash:
        return "has no prefix; write one (rdma/hca)"
    if prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io"):
        return "is Kubernetes' own; use another prefix"
    labels = prefix.split(".")
    if len(_QUOTA + prefix) > _LONGEST_PREFIX or not all(map(_LABEL.fullmatch, labels)):
        return "has a prefix that is no DNS name; use lower-case letters, digits, '-' and '.'"
    if len(rest) > _LONGEST_NAME or not _NAME.fullmatch(rest):
        return (
            "has a name after the slash that is not allowed; use up to "
            f"{_LONGEST_NAME} letters, digits, '-', '_' and '.'"
        )
    return ""


def replica(device: str, number: int) -> str:
    """Return the id of a replica."""
    return f"{device}::{number}"


def unit(device: str, number: int) -> str:
    """Return the id of a unit of memory."""
    return f"{device}::mem{number}"
