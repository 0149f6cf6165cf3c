"""What is kept for each pod that has no devices yet, computed again after every change.

1. A pod keeps its plan where all of it is free, in the order in which pods are expected.
2. Other pods keep what is free of their plan, or of the choice made here, and get the rest from
   what is left: GPUs first, then NICs near them. Their plan names a device that is ill, taken or
   missing, or they have no plan.

Nothing is stored between two computations. A device that is well again is again kept for the pod
that planned it, and a device that the kubelet has given away is simply not free.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from deviceplugin.allocation.picking import Picker
from deviceplugin.allocation.plans import needed
from deviceplugin.allocation.values import IdStock, NodePod, OfferedId

Names = Counter[str]


@dataclass(frozen=True, slots=True)
class DeviceWish:
    """What one pod should still get of one resource."""

    #: names that it should get, with numbers of ids
    names: Names
    #: how many ids it still needs in all
    missing: int
    #: whether the names are those of its plan
    planned: bool


@dataclass(slots=True)
class DeviceReservations:
    """What is kept for the pods of a node, beside what they have."""

    #: resource → uid → names with numbers of ids
    kept: dict[str, dict[str, Names]]

    def of(self, resource: str, uid: str) -> Names:
        """Return what is kept for a pod."""
        return self.kept.get(resource, {}).get(uid, Counter())

    def others(self, resource: str, uid: str) -> Names:
        """Return what is kept for all other pods."""
        total = Names()
        for each, names in self.kept.get(resource, {}).items():
            if each != uid:
                total.update(names)
        return total


def reserve(
    stocks: Iterable[IdStock],
    pods: Sequence[NodePod],
    wish: Callable[[NodePod, IdStock], DeviceWish | None],
    free: Callable[[IdStock], list[OfferedId]],
    gpus_of: Callable[[str, Mapping[str, dict[str, Names]]], list[str]],
    picker: Picker,
) -> DeviceReservations:
    """Return all reservations.

    ``pods``: those without devices, in order. ``free`` returns a stock's healthy offers that no
    container has, ``gpus_of`` the GPUs that a pod has or that are kept for it.
    """
    kept: dict[str, dict[str, Names]] = {}
    for stock in sorted(stocks, key=lambda stock: stock.nics):
        wishes = [(pod, found) for pod in pods if (found := wish(pod, stock)) is not None]
        mine = kept[stock.resource] = {}
        left = Names(offer.name for offer in free(stock)) if wishes else Names()
        disturbed = []
        for pod, one in sorted(wishes, key=lambda pair: not pair[1].planned):
            if one.names <= left and one.names.total() >= one.missing:
                left -= one.names
                mine[pod.uid] = one.names
            else:
                disturbed.append((pod, one))
        for pod, one in disturbed:
            near = gpus_of(pod.uid, kept) if stock.nics else []
            again = _rechosen(stock, one, left, free(stock), near, picker)
            left -= again
            mine[pod.uid] = again
    return DeviceReservations(kept)


def _rechosen(
    stock: IdStock,
    one: DeviceWish,
    left: Names,
    free: list[OfferedId],
    near: Sequence[str],
    picker: Picker,
) -> Names:
    """Keep what can be kept of a plan and choose the rest."""
    keep = one.names & left
    while keep.total() > one.missing > 0:
        keep -= Names([max(keep)])
    must, have = _take(free, keep, left)
    return Names(offer.name for offer in picker.pick(stock, have, must, one.missing, near))


def _take(
    free: list[OfferedId], keep: Names, left: Names
) -> tuple[list[OfferedId], list[OfferedId]]:
    """Split free offers into those that are kept and those that may be chosen."""
    keep, left = Names(keep), Names(left)
    must, have = [], []
    for offer in free:
        if left[offer.name] <= 0:
            continue
        left[offer.name] -= 1
        if keep[offer.name] > 0:
            keep[offer.name] -= 1
            must.append(offer)
        else:
            have.append(offer)
    return must, have


def missing(pod: NodePod, resource: str, held: int) -> int:
    """Return how many ids a pod that holds some is still to get."""
    return max(needed(pod, resource) - held, 0)
