"""One pod and everything that is known about where it will run: what every rule looks at."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from injection.clusterprofile import ClusterProfile
from injection.fabric import Fabrics
from injection.nodes import NOT_KNOWN, Nodes
from injection.overrides.owners import Owners
from injection.overrides.policy import NO_POLICIES, Policies
from injection.parts import CONTAINERS, INIT_CONTAINERS, Place
from injection.podview import Container, PodView
from kube.quantity import QuantityError, to_units
from workloads.accelerators import Accelerators


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known beside the pod; one value at a time, replaced whole when anything changes."""

    cluster: ClusterProfile
    fabrics: Fabrics
    accelerators: Accelerators
    nodes: Nodes = NOT_KNOWN
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels by name of namespace; a missing one is not known."""
    policies: Policies = NO_POLICIES
    owners: Owners = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """``in_gang``: it has siblings. ``accelerated``: containers that ask, and for how many."""

    pod: PodView
    namespace: str
    facts: Facts
    in_gang: bool
    accelerated: Mapping[Place, int]

    @classmethod
    def of(cls, pod: PodView, namespace: str, facts: Facts, *, in_gang: bool) -> "Subject":
        """Return what rules look at."""
        lists = ((CONTAINERS, pod.spec.containers), (INIT_CONTAINERS, pod.spec.init_containers))
        asked = {
            Place(where, index): asked_for(container, facts.accelerators)
            for where, containers in lists
            for index, container in enumerate(containers)
        }
        accelerated = {place: amount for place, amount in asked.items() if amount}
        return cls(pod, namespace, facts, in_gang, accelerated)

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
    return sum(_units(amount) for name, amount in asked.items() if name in accelerators)


def _units(amount: str | float) -> int:
    try:
        return to_units(amount)
    except QuantityError:
        return 1
