"""How much of a resource, and how many interfaces, a container gets on its fabric. Pure.

::

    the container says an amount itself ─► that one (interfaces follow the resource they are of)
    amount                              ─► that many
    share, live nodes known             ─► the node's amount x accelerators asked / the node's
    share, no live node                 ─► otherwise, for ``per`` accelerators

Live nodes may differ: one has lost a NIC, or a pool was replaced by a bigger one. What most of
them have counts, and among equals the smaller amount: a single degraded node must not make every
new pod small, and a pod that asks for what most nodes have finds one.
"""

from collections import Counter
from typing import Final

from muster.injection.choosing.choice import ChosenFabric, requested
from muster.injection.nodegroups import NodeGroup
from muster.injection.podview import Container
from muster.injection.profiles.fabric import ResourceNeed
from muster.kube.quantity import QuantityError, to_units
from muster.workloads.devices.accelerators import Accelerators

# An interface is an entry in an annotation, and users write amounts: a pod that asks for a thousand
# million NICs must wait for ever, not fill the webhook's memory. No node has more (AWS p5: 32).
MOST_INTERFACES: Final = 128


def amount(
    need: ResourceNeed,
    asked: int,
    container: Container,
    chosen: ChosenFabric,
    accelerators: Accelerators,
) -> int:
    """Return how many a container that asks for ``asked`` accelerators gets."""
    counted = need.counted
    stated = _stated(container, counted) if need.of else None
    if stated is not None:
        return stated
    if not need.share:
        return need.amount
    shares = Counter[int]()
    for group in chosen.groups:
        whole = _accelerators(group, accelerators)
        if whole and group.allocatable.get(counted, 0) > 0:
            shares[_up(group.allocatable[counted] * asked, whole)] += group.count
    if shares:
        return min(shares, key=lambda share: (-shares[share], share))
    return _up(need.otherwise * asked, need.per) if need.per else need.otherwise


def _stated(container: Container, resource: str) -> int | None:
    """Return what the container says itself; an amount that cannot be read says nothing."""
    said = requested(container).get(resource)
    try:
        return None if said is None else to_units(said)
    except QuantityError:
        return None


def _accelerators(group: NodeGroup, accelerators: Accelerators) -> int:
    return sum(amount for name, amount in group.allocatable.items() if name in accelerators)


def _up(amount: int, by: int) -> int:
    return -(-amount // by)
