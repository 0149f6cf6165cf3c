"""The state behind the table: pods, stocks, claims, and the reservations derived from them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from deviceplugin.allocation.claims import Claims, ClaimStage, ContainerClaim
from deviceplugin.allocation.pairs import EMPTY
from deviceplugin.allocation.picking import Picker
from deviceplugin.allocation.plans import Meaning, meaning
from deviceplugin.allocation.reservations import (
    DeviceReservations,
    DeviceWish,
    Names,
    missing,
    reserve,
)
from deviceplugin.allocation.values import ContainerAsk, IdStock, NodePod, OfferedId, PodStage


class Book:
    """Pods, stocks and claims, and what is kept for each pod.

    Code that changes pods, stocks or claims calls ``changed``.
    """

    def __init__(self) -> None:
        self.claims = Claims()
        self.stocks: Mapping[str, IdStock] = {}
        self.pods: dict[str, NodePod] = {}
        self.picker = Picker(EMPTY)
        self._chosen: dict[str, Mapping[str, Names]] = {}  # for pods without a plan
        self._reserved: DeviceReservations | None = None

    def changed(self, uid: str = "", *, rechoose: bool = False) -> None:
        """Compute reservations again; ``rechoose``: and drop the choice for this pod, or all."""
        self._reserved = None
        if rechoose and uid:
            self._chosen.pop(uid, None)
        elif rechoose:
            self._chosen.clear()

    # --- questions --------------------------------------------------------------------------

    def next(self, pod: NodePod, resource: str) -> tuple[ContainerAsk, int] | None:
        """Return the container of a pod that gets ids of a resource next, and how many.

        Containers get them in the pod's order. So the containers before one that the kubelet has
        listed had theirs, even if no claim shows it: init containers are not listed.
        """
        claims = self.claims.of(pod.uid, resource)
        served = {claim.container for claim in claims}
        if "" in served or pod.life is not PodStage.WAITING:
            return None
        rows = list(pod.asks(resource))
        named = {claim.container for claim in claims if claim.confirmed_by_list}
        begin = 1 + max((i for i, (ask, _) in enumerate(rows) if ask.name in named), default=-1)
        return next((row for row in rows[begin:] if row[0].name not in served), None)

    def free(self, stock: IdStock) -> list[OfferedId]:
        """Return the healthy ids that no container has."""
        owner_of = self.claims.owner_of
        return [o for o in stock.offers if o.healthy and not owner_of(stock.resource, o.id)]

    def held(self, uid: str, resource: str) -> Names:
        """Return the names of what a pod has."""
        return self.stocks[resource].names_of(self.claims.ids_of(uid, resource))

    def guesses(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """Return (uid, resource) → names of what pods have by guessed ids, until it is listed."""
        return {
            (claim.owner, claim.resource): tuple(self.held(claim.owner, claim.resource).elements())
            for claim in self.claims
            if claim.guessed and not claim.vouched and claim.resource in self.stocks
        }

    def in_use(self, claim: ContainerClaim) -> bool:
        """Return whether a started container of a living pod has it by the kubelet's own list.

        A claim that the list has not shown may be another pod's, and ids of shares are guessed
        after a start.
        """
        pod = self.pods.get(claim.owner)
        living = pod is None or pod.life in (PodStage.WAITING, PodStage.RUNNING)
        return living and claim.confirmed_by_list and claim.stage is ClaimStage.CONFIRMED

    def meaning(self, pod: NodePod) -> Meaning:
        """Return what a pod's plan means for this node's resources."""
        return meaning(pod, self.stocks)

    # --- reservations -----------------------------------------------------------------------

    def reservations(self) -> DeviceReservations:
        """Return what is kept for the pods that have no devices yet."""
        if self._reserved is None:
            waiting = [pod for pod in self.pods.values() if pod.life is PodStage.WAITING]
            waiting.sort(key=lambda pod: pod.order)
            means = {pod.uid: self.meaning(pod).wanted for pod in waiting}
            self._reserved = reserve(
                self.stocks.values(),
                waiting,
                lambda pod, stock: self._wish(pod, stock, means[pod.uid]),
                self.free,
                self.gpus_of,
                self.picker,
            )
        return self._reserved

    def _wish(self, pod: NodePod, stock: IdStock, means: Mapping[str, Names]) -> DeviceWish | None:
        resource = stock.resource
        if self.next(pod, resource) is None:
            return None
        held = self.claims.ids_of(pod.uid, resource)
        still = missing(pod, resource, len(held))
        wanted = means.get(resource, self._chosen.get(pod.uid, {}).get(resource))
        if wanted is not None:
            return DeviceWish(wanted - stock.names_of(held), still, planned=resource in means)
        return DeviceWish(Names(), still, planned=False) if _has_plan(pod) else None

    def gpus_of(self, uid: str, kept: Mapping[str, Mapping[str, Names]]) -> list[str]:
        """Return the GPUs that a pod has or that are kept for it, in the order of the stock."""
        found: dict[str, None] = {}
        for stock in self.stocks.values():
            if stock.nics:
                continue
            held = self.claims.ids_of(uid, stock.resource)
            names = kept.get(stock.resource, {}).get(uid, Names())
            if held or names:
                mine = (o for o in stock.offers if o.id in held or names[o.name] > 0)
                found |= dict.fromkeys(offer.parent for offer in mine)
        return list(found)

    # --- choosing ---------------------------------------------------------------------------

    def pick(
        self,
        stock: IdStock,
        uid: str,
        near_to: str,
        have: list[OfferedId],
        must: list[OfferedId],
        size: int,
    ) -> list[OfferedId]:
        """Take what is kept for a pod, then what is kept for no pod, then anything.

        ``near_to``: uid of the pod to whose GPUs NICs should be near. ``have`` and ``must`` have
        no id in common.
        """
        kept = self.reservations()
        theirs = counted(have, kept.others(stock.resource, uid))
        pick = partial(self.picker.pick, stock, free=_without(have, theirs))
        near = self.gpus_of(near_to, kept.kept) if stock.nics else []
        names_of_must = Names(offer.name for offer in must)
        own = counted(have, kept.of(stock.resource, uid) - names_of_must)
        chosen = pick(own, must, size, near)
        rest = _without(have, chosen)
        open_ = _without(rest, counted(rest, kept.others(stock.resource, uid)))
        chosen = pick(open_, chosen, size, near)
        return pick(_without(rest, chosen), chosen, size, near)

    def choose_for(self, pod: NodePod, stock: IdStock, have: list[OfferedId]) -> None:
        """Choose devices for a pod without a plan: all resources at once, so that they match.

        Of ``stock`` it gets ids of ``have``. An earlier choice stays while all of it is available.
        """
        if _has_plan(pod):
            return
        kept = self.reservations().of(stock.resource, pod.uid)
        if kept and kept <= Names(offer.name for offer in have):
            return
        self.changed(pod.uid, rechoose=True)
        chosen: dict[str, Names] = {}
        for each in sorted(self.stocks.values(), key=lambda one: one.nics):
            if self.next(pod, each.resource) is not None:
                found = self._choose(pod, each, have if each is stock else self.free(each), chosen)
                chosen[each.resource] = Names(offer.name for offer in found)
        self._chosen[pod.uid] = {
            resource: names + self.held(pod.uid, resource) for resource, names in chosen.items()
        }
        self.changed()

    def _choose(
        self, pod: NodePod, stock: IdStock, have: list[OfferedId], chosen: Mapping[str, Names]
    ) -> list[OfferedId]:
        theirs = self.reservations().others(stock.resource, pod.uid)
        held = self.claims.ids_of(pod.uid, stock.resource)
        number = missing(pod, stock.resource, len(held))
        mine = {resource: {pod.uid: names} for resource, names in chosen.items()}
        near = self.gpus_of(pod.uid, mine) if stock.nics else []
        left = _without(have, counted(have, theirs))
        return self.picker.pick(stock, left, (), number, near)

    def validate(self) -> None:
        """Raise ``AssertionError`` where claims or reservations contradict each other."""
        self.claims.validate()
        for resource, kept in self.reservations().kept.items():
            free = Names(offer.name for offer in self.free(self.stocks[resource]))
            if not sum(kept.values(), Names()) <= free:
                raise AssertionError(f"{resource}: more is kept than is free: {kept}")


def _has_plan(pod: NodePod) -> bool:
    return pod.plan is not None or bool(pod.problem)


def counted(have: Iterable[OfferedId], wanted: Names) -> list[OfferedId]:
    """Return the first offers of each name, as many as wanted."""
    left, found = Names(wanted), []
    for offer in have:
        if left[offer.name] > 0:
            left[offer.name] -= 1
            found.append(offer)
    return found


def _without(have: Iterable[OfferedId], chosen: Sequence[OfferedId]) -> list[OfferedId]:
    taken = {offer.id for offer in chosen}
    return [offer for offer in have if offer.id not in taken]
