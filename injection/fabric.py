"""The schema of a fabric profile: what pods need on one kind of network.

A profile is YAML data with its sources, checked whole when it is loaded: unknown fields, names
that frameworks own (``injection.reserved``) and volumes nobody mounts are errors of the profile,
never of a pod. ``injection/fabrics`` holds those that come with Muster; a cluster may bring more.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

import msgspec

from injection.parts import ConfigMap, EmptyDir, HostPath, Part, Sidecar
from kube.wire import Toleration

API_VERSION: Final = "muster.dev/v1alpha1"


class Targets(StrEnum):
    """Which containers are changed."""

    ACCELERATED = "accelerated"  # those that ask for an accelerator
    ALL = "all"


class Source(Part, frozen=True):
    """Where a value comes from: ``what`` of the profile, and the document or file."""

    what: str
    where: str


class Need(Part, frozen=True):
    """How much of an extended resource, or how many interfaces, one container gets.

    ``amount``: that many. ``share``: as many as the node has, in proportion to the accelerators
    the container asks for, rounded up; ``otherwise`` while no live node tells how many it has.
    """

    name: str
    amount: int = 0
    share: bool = False
    otherwise: int = 0


class VolumeAt(Part, frozen=True):
    """A volume and where containers see it."""

    name: str
    mount_path: str
    read_only: bool = False
    sub_path: str = ""
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None
    config_map: ConfigMap | None = None


class Injected(Part, frozen=True):
    """What is added. ``env`` keeps its order. ``shared_memory``: size of /dev/shm, a quantity."""

    env: dict[str, str] = msgspec.field(default_factory=dict)
    resources: tuple[Need, ...] = ()
    networks: tuple[Need, ...] = ()
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    volumes: tuple[VolumeAt, ...] = ()
    sidecars: tuple[Sidecar, ...] = ()
    capabilities: tuple[str, ...] = ()
    privileged: bool = False
    host_network: bool = False
    shared_memory: str = ""
    tolerations: tuple[Toleration, ...] = ()
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class When(Part, frozen=True):
    """What must hold for more to be added; everything that is said must.

    ``option``: the cluster or the pod (``muster.dev/fabric-options``) asks for it by this name.
    ``accelerators``: the pod's container asks for at least so many. ``node_labels``: every live
    node that the pod may go to has them.
    """

    option: str = ""
    accelerators: int = 0
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)


class Extra(Part, frozen=True):
    """What is added only sometimes."""

    when: When
    inject: Injected


class FabricSpec(Part, frozen=True):
    """``net``: what ``NCCL_NET`` is on this fabric, for loud failure where a cluster wants it.

    ``nodes``: labels (a value, or "" for any) and resources that tell its nodes from others.
    """

    version: str
    summary: str
    sources: tuple[Source, ...]
    inject: Injected
    targets: Targets = Targets.ACCELERATED
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)
    node_resources: tuple[str, ...] = ()
    extras: tuple[Extra, ...] = ()
    net: str = ""


class Name(Part, frozen=True):
    """The part of ObjectMeta that data files have."""

    name: str


class Fabric(Part, frozen=True):
    """One profile."""

    api_version: Literal["muster.dev/v1alpha1"]
    kind: Literal["FabricProfile"]
    metadata: Name
    spec: FabricSpec

    @property
    def name(self) -> str:
        """Return its name."""
        return self.metadata.name


Fabrics = Mapping[str, Fabric]
