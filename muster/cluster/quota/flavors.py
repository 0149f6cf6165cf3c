"""Flavors: sets of nodes that have quotas of their own.

::

    group: gpu, cpu ──► flavors in the order in which they are tried: spot, owned
                          a node is of the first flavor whose labels it has
                          a gang takes all resources of a group of one flavor

Source: Kueue's ResourceGroup and ResourceFlavor (apis/kueue/v1beta2). There the pods get the
flavor's labels as a node selector; here the gang is planned on the flavor's nodes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Final

Labels = tuple[tuple[str, str], ...]
"""Sorted (key, value) pairs."""

MOST_CHOICES: Final = 64
"""Combinations of flavors that are tried for one gang."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A set of nodes."""

    #: Its name, the flavor of cells.
    name: str
    #: Labels that its nodes have; without any it is all nodes.
    labels: Labels = ()


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that a gang takes of one and the same flavor."""

    #: Names of the resources.
    resources: tuple[str, ...]
    #: In the order in which they are tried.
    flavors: tuple[Flavor, ...]


@dataclass(frozen=True, slots=True)
class FlavorNodes:
    """The nodes of one flavor of a group: those that have its labels, and none of those before."""

    #: The flavor.
    flavor: str
    #: Its labels.
    labels: Labels
    #: Labels of the flavors that are tried before it.
    before: tuple[Labels, ...] = ()


Groups = tuple[ResourceGroup, ...]
Choice = tuple[str, ...]
"""The name of a flavor for each group."""


def choices(groups: Groups) -> Iterator[Choice]:
    """Yield the combinations of flavors in the order of trying; one empty one without groups."""
    names = [[flavor.name for flavor in group.flavors] for group in groups]
    yield from islice(product(*names), MOST_CHOICES)


def nodes_of(groups: Groups, choice: Choice) -> tuple[FlavorNodes, ...]:
    """Return which nodes a gang may have that takes these flavors; none: all nodes."""
    found = []
    for group, name in zip(groups, choice, strict=True):
        place = [flavor.name for flavor in group.flavors].index(name)
        before = tuple(flavor.labels for flavor in group.flavors[:place])
        nodes = FlavorNodes(name, group.flavors[place].labels, before)
        if nodes.labels or nodes.before:
            found.append(nodes)
    return tuple(found)


def chosen(groups: Groups, choice: Choice) -> dict[str, str]:
    """Return the flavor of each resource."""
    return {
        resource: name
        for group, name in zip(groups, choice, strict=True)
        for resource in group.resources
    }


def flavor_on(groups: Groups, resource: str, node: Sequence[str]) -> str | None:
    """Return the flavor that a pod takes of a resource; ``node``: the flavors of its node.

    A pod that stands on a node of no flavor is charged to the first. ``None``: in no group.
    """
    for group in groups:
        if resource in group.resources and group.flavors:
            names = [flavor.name for flavor in group.flavors]
            return next((name for name in names if name in node), names[0])
    return None


def flavors_of(known: Iterable[Flavor], labels: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the names of the flavors whose labels a node has, in their order."""
    return tuple(
        flavor.name
        for flavor in known
        if all(labels.get(key) == value for key, value in flavor.labels)
    )
