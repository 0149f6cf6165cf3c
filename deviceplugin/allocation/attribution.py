"""For which pod the kubelet asks; the call does not name it.

Pods are considered in this order::

    the call must include ids of a pod      that pod: its init containers had them
    the pod that got devices last           the kubelet admits one pod at a time
    batch, then creation                    it takes pods as its watch brings them, and those of
                                            one list by creation (HandlePodAdditions)
    what is kept for it is available        for pods of one batch and one second, as their
                                            order in the kubelet is not known
    uid

Only pods count whose next container asks for exactly that number; right after the kubelet's list,
only pods that are on it. The pod of an allocation is found in the same way, but first by the ids:
those that were offered to a pod, then those that are kept for one.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from deviceplugin.allocation.claims import ContainerClaim
from deviceplugin.allocation.tablestate import Book
from deviceplugin.allocation.values import ContainerAsk, IdStock, NodePod, OfferedId


class Turn(NamedTuple):
    """The pod and container that ids are given to."""

    #: a pod's uid, or the owner of claims of an unknown pod; "": a new unknown pod
    owner: str
    #: None where it is not known
    ask: ContainerAsk | None
    #: whether no other pod can be meant
    sure: bool


class PodAttribution:
    """Finds the pod of a call."""

    def __init__(self, book: Book) -> None:
        self._book = book
        #: owner that got devices last
        self.current = ""
        #: resource → the last offer: uid and ids
        self.offered: dict[str, tuple[str, frozenset[str]]] = {}
        #: (namespace, name) of the pods on the kubelet's list, None after an allocation
        self.known: frozenset[tuple[str, str]] | None = None

    def given(self, claim: ContainerClaim) -> None:
        """Store which pod was given devices."""
        self.current = claim.owner
        self.known = None
        self.offered.pop(claim.resource, None)

    def asking(self, resource: str, size: int) -> list[NodePod]:
        """Return the pods that may ask for so much now, the likeliest first."""
        found = [
            pod
            for pod in self._book.pods.values()
            if (row := self._book.next(pod, resource)) is not None and row[1] == size
        ]
        if self.known is not None:
            known = [pod for pod in found if (pod.namespace, pod.name) in self.known]
            found = known or found
        return sorted(found, key=lambda pod: (pod.uid != self.current, pod.order))

    def asking_pod(
        self, stock: IdStock, size: int, must: Sequence[OfferedId], have: Sequence[OfferedId]
    ) -> NodePod | None:
        """Return the pod for which the kubelet most likely asks; None where no pod does."""
        owner_of = self._book.claims.owner_of
        holders = {owner_of(stock.resource, offer.id) for offer in must} - {""}
        if len(holders) == 1:
            return self._book.pods.get(holders.pop())
        asking = self.asking(stock.resource, size)
        if len(asking) < 2 or asking[0].uid == self.current:  # noqa: PLR2004  # no choice
            return asking[0] if asking else None
        there = Counter(offer.name for offer in (*must, *have))
        kept = self._book.reservations()
        alike = [pod for pod in asking if pod.order[:2] == asking[0].order[:2]]
        fitting = (pod for pod in alike if kept.of(stock.resource, pod.uid) <= there)
        return next(fitting, asking[0])

    def recognise(self, stock: IdStock, ids: frozenset[str]) -> Turn:
        """Return the pod and container that get these ids."""
        passed = self._passed_on(stock.resource, ids)
        if passed is not None:
            return passed
        asking = self.asking(stock.resource, len(ids))
        if not asking:
            return Turn("", None, sure=False)
        pod = self._by_set(stock, asking, ids) or asking[0]
        row = self._book.next(pod, stock.resource)
        return Turn(pod.uid, None if row is None else row[0], sure=len(asking) == 1)

    def _passed_on(self, resource: str, ids: frozenset[str]) -> Turn | None:
        """Return the pod whose init containers had some of the ids, known or not."""
        for claim in self._book.claims.holding(resource, ids):
            pod = self._book.pods.get(claim.owner)
            row = None if pod is None else self._book.next(pod, resource)
            if claim.passes_on and row is not None and row[1] == len(ids):
                return Turn(claim.owner, row[0], claim.sure)
            if claim.anonymous and claim.owner == self.current:
                claim.passes_on = True  # the kubelet is still at the same pod
                return Turn(claim.owner, None, sure=False)
        return None

    def _by_set(self, stock: IdStock, asking: list[NodePod], ids: frozenset[str]) -> NodePod | None:
        """Return the pod that these ids were offered to, else the one that they are kept for."""
        uid, offered = self.offered.get(stock.resource, ("", frozenset()))
        if offered == ids and any(pod.uid == uid for pod in asking):
            return self._book.pods[uid]
        names, kept = stock.names_of(ids), self._book.reservations()
        return next((pod for pod in asking if names <= kept.of(stock.resource, pod.uid)), None)
