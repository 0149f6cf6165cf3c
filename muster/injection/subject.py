"""One pod and everything that is known about where it will run: what every rule looks at."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from muster.injection.nodegroups import NOT_KNOWN, NodeGroups
from muster.injection.overrides.owners import Owners
from muster.injection.overrides.policy import NO_POLICIES, Policies
from muster.injection.patching.additions import CONTAINERS, INIT_CONTAINERS, ContainerPlace
from muster.injection.patching.containers import container_at
from muster.injection.podview import Container, PodView
from muster.injection.profiles.clusterprofile import ClusterProfile
from muster.injection.profiles.fabric import Fabrics
from muster.injection.profiles.tiers import AcceleratorTaint, PlacesData, Spot, Tiers
from muster.kube import wire
from muster.kube.quantity import QuantityError, to_units
from muster.workloads.devices.accelerators import Accelerators
from muster.workloads.registry import PodMembership, place


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the pod; one value at a time, replaced whole when anything changes."""

    cluster: ClusterProfile
    fabrics: Fabrics
    accelerators: Accelerators
    places: PlacesData
    nodes: NodeGroups = NOT_KNOWN
    #: labels by name of namespace; a missing one is not known
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    policies: Policies = NO_POLICIES
    owners: Owners = field(default_factory=dict)
    #: what follows from these facts alone and was worked out before; new facts begin anew
    derived: dict[Hashable, object] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def tiers(self) -> Tiers:
        """Return the cluster's own tiers, else those that come with Muster."""
        return self.cluster.spec.tiers or self.places.tiers

    @property
    def spot(self) -> Mapping[str, Spot]:
        """Return how providers mark spot capacity, by name."""
        return self.places.spot

    @property
    def accelerator_taints(self) -> tuple[AcceleratorTaint, ...]:
        """Return the taints that only say "accelerators here"."""
        return self.places.taints


@dataclass(frozen=True, slots=True)
class Gang:
    """What is known of the pod's gang."""

    dialect: str = ""
    #: members in all, ``None`` where nobody said
    size: int | None = None
    #: how many pods may meet in one rendezvous: the pod's role, its Job, all that one object makes.
    #: () for a pod whose object is not at hand. The object may be scaled later, so they are good
    #: for a warning to its author, but not for what stays in the pods.
    counts: tuple[int, ...] = ()
    #: whether pods of other objects may be members, too
    is_open: bool = False
    #: the pod's kind of member, "" where all are of one kind, as far as the pod says
    role: str = ""
    #: the name that the pod gives it, "" where that is not known
    name: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """One pod with what is known about it."""

    pod: PodView
    namespace: str
    facts: Facts
    #: ``None`` for a pod alone
    gang: Gang | None
    #: containers that ask for accelerators, and for how many
    accelerated: Mapping[ContainerPlace, int]
    #: answers that several rules need
    known: dict[Hashable, object] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, pod: PodView, namespace: str, facts: Facts, gang: Gang | None) -> "Subject":
        """Return what rules look at."""
        lists = ((CONTAINERS, pod.spec.containers), (INIT_CONTAINERS, pod.spec.init_containers))
        asked = {
            ContainerPlace(where, index): asked_for(container, facts.accelerators)
            for where, containers in lists
            for index, container in enumerate(containers)
        }
        accelerated = {place: amount for place, amount in asked.items() if amount}
        return cls(pod, namespace, facts, gang, accelerated)

    @property
    def is_gang(self) -> bool:
        """Return whether it has siblings, as far as anybody knows."""
        return self.gang is not None and (self.gang.size is None or self.gang.size > 1)

    @property
    def resources(self) -> frozenset[str]:
        """Return the names of the accelerators that any container asks for."""
        owns = [container_at(self.pod, place).resources for place in self.accelerated]
        named = {name for own in owns if own for name in (*own.limits, *own.requests)}
        return frozenset([name for name in named if name in self.facts.accelerators])

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return the pod's annotations."""
        return self.pod.metadata.annotations


def asked_for(container: Container, accelerators: Accelerators) -> int:
    """Return how many accelerators a container asks for; an amount that is no number counts 1."""
    own = container.resources
    if own is None:
        return 0
    asked = {**own.requests, **own.limits}
    return sum([_units(amount) for name, amount in asked.items() if name in accelerators])


def _units(amount: str | float) -> int:
    try:
        return to_units(amount)
    except QuantityError:
        return 1


def gang_of(pod: wire.Pod) -> Gang | None:
    """Return what the pod itself says of its gang, ``None`` for a pod alone."""
    return gang_as(place(pod))


def gang_as(placed: PodMembership | None) -> Gang | None:
    """Return the same for a pod that has been looked up already (``registry.place``)."""
    if placed is None:
        return None
    size = placed.spec.size if placed.spec else None
    name = placed.member.key.rpartition("/")[2]
    return Gang(placed.dialect.name, size, role=placed.member.role, name=name)
