"""The pieces of a pod that profiles and rules add, as they travel.

Each is checked when a profile is loaded, so that what goes into a patch is never more than the
API server knows. ``Additions`` is what one source wants; ``muster.injection.patching.draft``
decides what of it a pod gets.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from muster.kube.wire import Toleration

CONTAINERS: Final = "containers"
INIT_CONTAINERS: Final = "initContainers"


class AdditionStruct(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename="camel",
    omit_defaults=True,
    kw_only=True,
):
    """Base of the structs; carries the encoding rules only."""


class FieldRef(AdditionStruct, frozen=True):
    """core/v1 ObjectFieldSelector."""

    field_path: str


class EnvSource(AdditionStruct, frozen=True):
    """core/v1 EnvVarSource, the one form that is added: a field of the pod itself."""

    field_ref: FieldRef


class Env(AdditionStruct, frozen=True):
    """core/v1 EnvVar."""

    name: str
    value: str = ""
    value_from: EnvSource | None = None


class Mount(AdditionStruct, frozen=True):
    """core/v1 VolumeMount."""

    name: str
    mount_path: str
    read_only: bool = False
    sub_path: str = ""
    mount_propagation: str = ""


class HostPath(AdditionStruct, frozen=True):
    """core/v1 HostPathVolumeSource."""

    path: str
    type: str = ""


class EmptyDir(AdditionStruct, frozen=True):
    """core/v1 EmptyDirVolumeSource."""

    medium: str = ""
    size_limit: str = ""


class ConfigMap(AdditionStruct, frozen=True):
    """core/v1 ConfigMapVolumeSource."""

    name: str
    optional: bool = False


class Claim(AdditionStruct, frozen=True):
    """core/v1 PersistentVolumeClaimVolumeSource."""

    claim_name: str
    read_only: bool = False


class Csi(AdditionStruct, frozen=True):
    """core/v1 CSIVolumeSource."""

    driver: str
    read_only: bool = False
    volume_attributes: dict[str, str] = msgspec.field(default_factory=dict)


class DownwardFile(AdditionStruct, frozen=True):
    """core/v1 DownwardAPIVolumeFile: a field of the pod as a file."""

    path: str
    field_ref: FieldRef


class Downward(AdditionStruct, frozen=True):
    """core/v1 DownwardAPIVolumeSource."""

    items: tuple[DownwardFile, ...]


class Volume(AdditionStruct, frozen=True):
    """core/v1 Volume with one of the sources that are added."""

    name: str
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None
    config_map: ConfigMap | None = None
    downward_api: Downward | None = msgspec.field(default=None, name="downwardAPI")
    persistent_volume_claim: Claim | None = None
    csi: Csi | None = None


class Capabilities(AdditionStruct, frozen=True):
    """core/v1 Capabilities."""

    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


class SecurityContext(AdditionStruct, frozen=True):
    """core/v1 SecurityContext of a container that is added whole."""

    privileged: bool = False
    capabilities: Capabilities | None = None


class ExecAction(AdditionStruct, frozen=True):
    """core/v1 ExecAction."""

    command: tuple[str, ...]


class Probe(AdditionStruct, frozen=True):
    """core/v1 Probe, the forms that sidecars of fabrics use."""

    exec: ExecAction
    initial_delay_seconds: int = 0
    period_seconds: int = 0
    failure_threshold: int = 0


class Sidecar(AdditionStruct, frozen=True):
    """core/v1 Container that is added whole; ``restart_policy: Always`` makes it a sidecar."""

    name: str
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[Env, ...] = ()
    volume_mounts: tuple[Mount, ...] = ()
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    restart_policy: str = ""


class PodClaim(AdditionStruct, frozen=True):
    """core/v1 PodResourceClaim (dynamic resource allocation), made from a template."""

    name: str
    resource_claim_template_name: str


class ClaimUse(AdditionStruct, frozen=True):
    """core/v1 ResourceClaim: an entry of ``resources.claims`` of a container."""

    name: str


class ContainerPlace(msgspec.Struct, frozen=True, gc=False):
    """Which container: the list it is in, and where."""

    within: str
    index: int


class ContainerAdditions(msgspec.Struct, frozen=True, gc=False):
    """What one container is to have. ``resources``: extended ones, requests equal to limits.

    ``claims``: names of the pod's claims (``Additions.claims``) that it uses.
    """

    env: tuple[Env, ...] = ()
    resources: Mapping[str, str] = {}
    claims: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    capabilities: tuple[str, ...] = ()
    privileged: bool = False


class Additions(msgspec.Struct, frozen=True, gc=False):
    """What one source wants a pod to have; ``source`` names it in the ledger.

    ``networks``: Multus networks, ``namespace/name`` or ``name``, one entry per interface.
    ``host_network`` brings ``dnsPolicy: ClusterFirstWithHostNet`` with it.
    """

    source: str
    containers: tuple[tuple[ContainerPlace, ContainerAdditions], ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    networks: tuple[str, ...] = ()
    volumes: tuple[Volume, ...] = ()
    claims: tuple[PodClaim, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: Mapping[str, str] = {}
    host_network: bool = False
    runtime_class: str = ""
    priority_class: str = ""
    warnings: tuple[str, ...] = ()
