"""The schema of a fabric profile: what pods need on one kind of network.

::

    inject ◄─ version ◄─ extras that hold ◄─ the cluster's own words      (later ones win)
      └─────────────────────┬──────────────────────────────────┘
                     what one pod gets (``over``)

A profile is YAML data with its sources, checked whole when it is loaded (``fabriccheck``):
unknown fields, names that frameworks own, values without a source and volumes without a mount
are errors of the profile, never of a pod. ``injection/fabrics`` holds those that come with
Muster; a cluster may bring more.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

import msgspec

from muster.injection.patching.additions import (
    AdditionStruct,
    ConfigMap,
    EmptyDir,
    HostPath,
    Sidecar,
)
from muster.kube.wire import Toleration

API_VERSION: Final = "muster.dev/v1alpha1"
UNBOUNDED: Final = "unbounded"  # shared memory: as much as the node or the pod's limit allows


class Targets(StrEnum):
    """Which containers are changed."""

    ACCELERATED = "accelerated"  # those that ask for an accelerator
    ALL = "all"


class ValueSource(AdditionStruct, frozen=True):
    """Where values come from: ``what`` they are, and ``where`` that is said.

    ``of``: the variables, resources, networks, annotations, claims and labels it vouches for;
    a name that ends in ``*`` is a prefix. Empty for all that no other source names.
    """

    what: str
    where: str
    of: tuple[str, ...] = ()


class ResourceNeed(AdditionStruct, frozen=True):
    """How much of an extended resource, or how many interfaces, one container gets.

    ``amount``: that many. ``share``: as many as the node has of the resource ``of`` (by default
    its own name), in proportion to the accelerators the container asks for, rounded up.
    ``otherwise``: while no live node shows it, that many per ``per`` accelerators (0: that many).
    """

    name: str
    amount: int = 0
    share: bool = False
    of: str = ""
    otherwise: int = 0
    per: int = 0

    @property
    def counted(self) -> str:
        """Return the resource whose amount on the node is meant."""
        return self.of or self.name


class EntryList(AdditionStruct, frozen=True):
    """An annotation that is a JSON list of equal entries, one per interface.

    ``entry``: JSON; ``of``: the resource whose amount in the container is their number.
    """

    annotation: str
    entry: str
    of: str


class VolumeAt(AdditionStruct, frozen=True):
    """A volume and where containers see it; without ``mount_path`` only sidecars mount it."""

    name: str
    mount_path: str = ""
    read_only: bool = False
    sub_path: str = ""
    host_path: HostPath | None = None
    empty_dir: EmptyDir | None = None
    config_map: ConfigMap | None = None


class ClaimTemplate(AdditionStruct, frozen=True):
    """A resource claim (DRA), made from a template that is there in the pod's namespace.

    ``template``: its name, unless the pod names another in ``annotation``. Without either the
    pod gets no claim, and its author a warning.
    """

    name: str
    template: str = ""
    annotation: str = ""


class Injected(AdditionStruct, frozen=True):
    """What is added. ``env`` keeps its order.

    ``paths``: variables that must name a directory (``LD_LIBRARY_PATH``): set where the user
    sets none, with a warning where the user's list lacks it. ``lists``: annotations with an entry
    per interface. ``shared_memory``: size of /dev/shm, a quantity or ``unbounded``.
    """

    env: dict[str, str] = msgspec.field(default_factory=dict)
    paths: dict[str, str] = msgspec.field(default_factory=dict)
    resources: tuple[ResourceNeed, ...] = ()
    networks: tuple[ResourceNeed, ...] = ()
    lists: tuple[EntryList, ...] = ()
    claims: tuple[ClaimTemplate, ...] = ()
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


class When(AdditionStruct, frozen=True):
    """What must hold for more to be added; everything that is said must.

    ``option``, ``without_option``: the cluster or the pod (``muster.dev/fabric-options``) asks
    for it by this name, or does not. ``accelerators``: the pod's container asks for at least so
    many. ``node_labels``: every node that the pod may go to has them, as far as is known.
    """

    option: str = ""
    without_option: str = ""
    accelerators: int = 0
    node_labels: dict[str, str] = msgspec.field(default_factory=dict)


class ProfileExtra(AdditionStruct, frozen=True):
    """What is added only sometimes."""

    when: When
    inject: Injected


class Version(AdditionStruct, frozen=True):
    """What goes with one release of the vendor's software, and only with that.

    ``components``: what it was released with, by name (plugin, daemon, nccl …), for people.
    """

    name: str
    inject: Injected
    components: dict[str, str] = msgspec.field(default_factory=dict)


class ForbiddenResource(AdditionStruct, frozen=True):
    """A resource that the vendor does not allow beside this fabric, and why."""

    resource: str
    why: str


class FabricSpec(AdditionStruct, frozen=True):
    """``net``: what ``NCCL_NET`` is on this fabric, for loud failure where a cluster wants it.

    ``node_labels`` (the values allowed, none for any) and ``node_resources`` distinguish its nodes
    from others.
    ``accelerators``: what one container must ask for at least, because the fabric is handed out
    by the node or not at all. ``versions``: the first one is the default. ``notes``: what a
    person should know, and what could not be verified.
    """

    version: str
    summary: str
    sources: tuple[ValueSource, ...]
    inject: Injected = Injected()
    versions: tuple[Version, ...] = ()
    extras: tuple[ProfileExtra, ...] = ()
    targets: Targets = Targets.ACCELERATED
    node_labels: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    node_resources: tuple[str, ...] = ()
    accelerators: int = 0
    forbids: tuple[ForbiddenResource, ...] = ()
    net: str = ""
    notes: tuple[str, ...] = ()


class Name(msgspec.Struct, frozen=True):
    """The part of ObjectMeta that matters; an object from the API server has more."""

    name: str


class IgnoredStatus(msgspec.Struct, frozen=True):
    """What controllers write beside the spec; nothing of it is read."""


class FabricProfile(AdditionStruct, frozen=True):
    """One profile."""

    api_version: Literal["muster.dev/v1alpha1"]
    kind: Literal["FabricProfile"]
    metadata: Name
    spec: FabricSpec
    status: IgnoredStatus | None = None

    @property
    def name(self) -> str:
        """Return its name."""
        return self.metadata.name

    @property
    def options(self) -> frozenset[str]:
        """Return the names that switch something on or off."""
        whens = [extra.when for extra in self.spec.extras]
        return frozenset(
            name for when in whens for name in (when.option, when.without_option) if name
        )


Fabrics = Mapping[str, FabricProfile]
