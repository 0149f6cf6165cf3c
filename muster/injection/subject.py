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
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels by name of namespace; a missing one is not known."""
    policies: Policies = NO_POLICIES
    owners: Owners = field(default_factory=dict)
    derived: dict[Hashable, object] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """What follows from these facts alone and was worked out before; new facts begin anew."""

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
    """What is known of the pod's gang. ``size``: members in all, ``None`` where nobody said.

    ``made``: how many pods the object makes, where that is at hand. It may be scaled later, so it
    is good for a word to its author, but not for what stays in the pods. ``name``: how the pod
    calls it, "" where that is not known.
    """

    dialect: str = ""
    size: int | None = None
    made: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """``gang``: ``None`` for a pod alone. ``accelerated``: containers that ask, and how many."""

    pod: PodView
    namespace: str
    facts: Facts
    gang: Gang | None
    accelerated: Mapping[ContainerPlace, int]
    known: dict[Hashable, object] = field(default_factory=dict, compare=False, repr=False)
    """What several rules ask and one answer is enough for."""

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
    """Return what the pod's own words tell of its gang, ``None`` for a pod alone."""
    return gang_as(place(pod))


def gang_as(placed: PodMembership | None) -> Gang | None:
    """Return the same for a pod that has been looked up already (``registry.place``)."""
    if placed is None:
        return None
    name = placed.member.key.rpartition("/")[2]
    return Gang(placed.dialect.name, placed.spec.size if placed.spec else None, name=name)
