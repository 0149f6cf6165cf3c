"""The operator's settings of what containers get with their devices."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final, Literal

import msgspec

Strategy = Literal["cdi-cri", "cdi-annotations", "envvar", "volume-mounts", "device-specs"]
STRATEGIES: Final = ("cdi-cri", "cdi-annotations", "envvar", "volume-mounts", "device-specs")
CDI_STRATEGIES: Final = frozenset({"cdi-cri", "cdi-annotations"})
FEATURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gdrcopy_enabled": "NVIDIA_GDRCOPY",
        "gds_enabled": "NVIDIA_GDS",
        "mofed_enabled": "NVIDIA_MOFED",
    }
)
CDI_PREFIX: Final = "cdi.k8s.io/"  # container-device-interface pkg/cdi, AnnotationPrefix
SharePolicy = Literal["distributed", "spread", "packed"]


class AllocationSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True
):
    """The section ``allocation``.

    Strategies, by which NVIDIA's GPUs reach a container, one or several:

    ========================  ==============================================================
    ``cdi-cri`` (default)     CDI names; the container runtime does the rest (kubelet 1.28 on)
    ``cdi-annotations``       the same names in an annotation of the container, for runtimes
                              that read them there
    ``envvar``                NVIDIA_VISIBLE_DEVICES, for the NVIDIA container runtime
    ``volume-mounts``         a mount for each device, for that runtime where it does not trust
                              environment variables
    ``device-specs``          device files; needs no special runtime, brings no driver libraries
    ========================  ==============================================================

    With several strategies a container gets what each of them gives; of ``envvar`` and
    ``volume-mounts`` the latter sets the variable, as in NVIDIA's plugin. AMD's GPUs and NICs
    reach it by CDI names where a strategy has them, else by device files.
    """

    #: how NVIDIA's GPUs reach a container; see the table
    device_list_strategy: Strategy | tuple[Strategy, ...] = "cdi-cri"
    #: whether a container gets device files beside ``envvar`` or ``volume-mounts``, so that it
    #: keeps its GPUs when systemd writes its cgroup's device rules anew
    pass_device_specs: bool = False
    #: prefix of the annotation's key with ``cdi-annotations``
    cdi_annotation_prefix: str = CDI_PREFIX
    #: folder of the CDI specs
    cdi_folder: str = "/var/run/cdi"
    #: folder in which Multus finds what is known of PCI functions; "" writes nothing
    device_info_folder: str = "/var/run/k8s.cni.cncf.io/devinfo/dp"
    #: folder on the host in which the MPS control daemon has its pipes
    mps_root: str = "/run/nvidia/mps"
    #: file that is mounted, and named by NCCL_TOPO_FILE, for containers with GPUs; "" for none
    nccl_topology_file: str = ""
    #: whether NCCL_IB_HCA names a container's NICs
    nccl_hcas: bool = False
    #: whether NVIDIA's container runtime adds what it has for GPUDirect RDMA's gdrdrv device
    gdrcopy_enabled: bool = False
    #: the same for GPUDirect Storage
    gds_enabled: bool = False
    #: the same for the devices of MOFED
    mofed_enabled: bool = False
    #: which device the next replica is of: the one with fewest or with most replicas given, or
    #: one of which the container has none yet (``spread``)
    shares: SharePolicy = "distributed"

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """Return the strategies, in the order of ``STRATEGIES``."""
        listed = self.device_list_strategy
        chosen = (listed,) if isinstance(listed, str) else listed
        return tuple(each for each in STRATEGIES if each in chosen)

    @property
    def features(self) -> Mapping[str, str]:
        """Return the variables by which NVIDIA's runtime adds more than GPUs."""
        if self.by_cdi_alone:
            return {}
        return {FEATURES[field]: "enabled" for field in FEATURES if getattr(self, field)}

    @property
    def by_cdi(self) -> bool:
        """Return whether containers get CDI names."""
        return not CDI_STRATEGIES.isdisjoint(self.strategies)

    @property
    def by_cdi_alone(self) -> bool:
        """Return whether CDI names are all that containers get."""
        return CDI_STRATEGIES.issuperset(self.strategies)

    @property
    def gives_files(self) -> bool:
        """Return whether containers get the device files of NVIDIA's GPUs by the kubelet."""
        passed = self.pass_device_specs and not self.by_cdi_alone
        return passed or "device-specs" in self.strategies


def problems(settings: AllocationSettings) -> Iterator[str]:
    """Yield a line for each value that is not allowed: field, value, what is allowed."""
    for field, path in (
        ("cdiFolder", settings.cdi_folder),
        ("deviceInfoFolder", settings.device_info_folder),
        ("mpsRoot", settings.mps_root),
        ("ncclTopologyFile", settings.nccl_topology_file),
    ):
        if path and not PurePosixPath(path).is_absolute():
            yield f"{field}: {path} is no absolute path; write it from the root"
    if not settings.cdi_folder:
        yield "cdiFolder: is empty; the default is /var/run/cdi, which container runtimes read"
    if not settings.strategies:
        yield f"deviceListStrategy: is empty; name one or several of {', '.join(STRATEGIES)}"
    if not settings.cdi_annotation_prefix.endswith("/"):
        prefix = settings.cdi_annotation_prefix
        yield f"cdiAnnotationPrefix: {prefix!r} is no prefix of a key; write {CDI_PREFIX}"


def without_effect(settings: AllocationSettings) -> Iterator[tuple[str, str]]:
    """Yield each field that is set and changes nothing, and what to do about it.

    NVIDIA's plugin passes these over in silence (internal/plugin/server.go,
    ``getAllocateResponse`` returns early where all strategies are CDI).
    """
    named = ", ".join(settings.strategies)
    for field, text in (*_beside_cdi(settings), *_beside_others(settings)):
        yield field, f"has no effect with deviceListStrategy {named}: {text}"


def _beside_cdi(settings: AllocationSettings) -> Iterator[tuple[str, str]]:
    if not settings.by_cdi_alone:
        return
    if settings.pass_device_specs:
        yield "passDeviceSpecs", "CDI specs name the device files; leave it out, or add envvar"
    for field, variable in FEATURES.items():
        if getattr(settings, field):
            name = f"{field.partition('_')[0]}Enabled"
            yield name, f"only NVIDIA's runtime reads {variable}; leave it out, or add envvar"


def _beside_others(settings: AllocationSettings) -> Iterator[tuple[str, str]]:
    strategies = set(settings.strategies)
    if settings.pass_device_specs and "device-specs" in strategies:
        yield "passDeviceSpecs", "device-specs gives the files already; leave one out"
    if settings.cdi_annotation_prefix != CDI_PREFIX and "cdi-annotations" not in strategies:
        yield "cdiAnnotationPrefix", "leave it out, or add cdi-annotations"
    if {"envvar", "volume-mounts"} <= strategies:
        yield "deviceListStrategy", "volume-mounts sets the variable of envvar; leave one out"
