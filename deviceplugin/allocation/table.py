"""One table per node: which pod is to have, was offered, and has which devices.

The kubelet asks per container and resource and never names the pod. The table knows the node's
pods, in the order in which the kubelet is expected to admit them, and what is kept for each
(``reservations``). It answers with names that are kept for one pod only, and recognises the pod by
the ids that the kubelet then allocates::

    pods, plans ─────┐                    ┌──► preferred: what is kept for the pod that is next
    stocks, health ──┼──► reservations ───┤
    claims ──────────┘                    └──► allocate: the pod with that set ──► claim
        ▲                                                                             │
        └──── listed: what each container has by pod-resources List ◄───────┘

*Which pod is next*: the one that is being admitted (it has a part of what it asks for, and got it
last), then by ``NodePod.order``. Pods that ask for the same can still be confused. The kubelet's
list helps: it has a pod from its admission on, and not before, and may name pods that the watch has
not brought (``strangers``). When a container starts, confusion is corrected in any case: claims
move to the pods that have the devices, and reservations follow.

*What is refused*: ids that a started container of another living pod has by the kubelet's own list.
The kubelet frees devices only when containers have ended, but one that has lost its checkpoint
gives away devices that are in use. All other calls are granted, whatever was planned: the kubelet
decides, and a difference to a plan is a ``Deviation``.

Every call takes time in proportion to the node's devices and waiting pods. For one thread only.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from deviceplugin.allocation.attribution import PodAttribution
from deviceplugin.allocation.claims import ClaimStage, ContainerClaim, unknown
from deviceplugin.allocation.deviations import deviations
from deviceplugin.allocation.picking import Picker
from deviceplugin.allocation.plans import needed
from deviceplugin.allocation.reconciliation import Reconciliation
from deviceplugin.allocation.reservations import Names
from deviceplugin.allocation.tablestate import Book, counted
from deviceplugin.allocation.values import (
    ContainerAsk,
    Deviation,
    IdStock,
    ListedDevices,
    NodePod,
    PodStage,
)
from deviceplugin.errors import AllocationRefused, RefusalCause


class Table:
    """The table of one node; see the module. No method waits or reads a clock."""

    def __init__(self) -> None:
        self._book = Book()
        self._turns = PodAttribution(self._book)
        self._kubelet: Hashable = None

    # --- what happens on the node -----------------------------------------------------------

    def stock(self, stocks: Iterable[IdStock], picker: Picker | None = None) -> None:
        """Take in what is offered now; ``picker``: a new one where the inventory has changed."""
        self._book.stocks = {stock.resource: stock for stock in stocks}
        self._book.picker = picker or self._book.picker
        self._book.changed(rechoose=True)

    def pod(self, pod: NodePod) -> None:
        """Take in a pod as it is now; release its devices when it is over."""
        book, before = self._book, self._book.pods.get(pod.uid)
        if before is not None:  # a pod keeps its place in the order
            pod = replace(pod, batch=before.batch, created=before.created)
        else:  # the kubelet may have listed it before
            for claim in book.claims.of(unknown(pod.namespace, pod.name)):
                book.claims.move(claim, pod.uid, claim.container)
        book.pods[pod.uid] = pod
        if pod.life is PodStage.OVER:
            book.claims.drop_owner(pod.uid)
        elif pod.life is PodStage.RUNNING:
            _confirm(book.claims.of(pod.uid))
        replanned = before is not None and before.plan != pod.plan
        book.changed(pod.uid, rechoose=replanned or pod.life is not PodStage.WAITING)

    def gone(self, uid: str) -> None:
        """Forget a pod and release its devices."""
        self._book.pods.pop(uid, None)
        self._book.claims.drop_owner(uid)
        self._book.changed(uid, rechoose=True)

    def listed(
        self, listing: Iterable[ListedDevices], since: int, kubelet: Hashable = None
    ) -> None:
        """Take in the kubelet's list of what each container has.

        ``since``: ``serial`` when the kubelet was asked; it cannot know of later claims. The next
        call relies on the listed pods being those that the kubelet knows. ``kubelet``: which one
        answered; another one vouches for no pod yet.
        """
        rows = tuple(listing)
        if kubelet != self._kubelet:
            self._kubelet = kubelet
            for claim in self._book.claims:
                claim.vouched = False
        guesses = self._book.guesses()
        listed = Reconciliation(self._book, since).take(rows)
        self._guess_again({key: guesses[key] for key in guesses if key[0] not in listed})
        self._turns.known = frozenset((row.namespace, row.pod) for row in rows)
        self._book.changed()

    def recall(self, uid: str, devices: Mapping[str, Sequence[str]]) -> None:
        """Take over a pod's devices from ``muster.dev/node-allocations`` after a start.

        Call it before ``listed``, which knows better. The annotation is needed since the kubelet
        does not list what init containers have, and cannot always be asked. Ids of shares are
        guessed, and so is the container where a pod has less than it needs.
        """
        claims, pod = self._book.claims, self._book.pods.get(uid)
        if pod is None or pod.life is PodStage.OVER:
            return
        for resource, names in devices.items():
            stock = self._book.stocks.get(resource)
            if stock is None or claims.of(uid, resource):
                continue
            free = [o for o in stock.offers if not claims.owner_of(resource, o.id)]
            ids = frozenset(offer.id for offer in counted(free, Names(names)))
            if ids:
                first = any(ask.passes_on for ask, _ in pod.asks(resource))
                made = claims.make(resource, ids, uid, "", passes_on=first)
                made.vouched = False
                shared = len({offer.name for offer in stock.offers}) < len(stock.offers)
                made.guessed = shared or len(ids) < needed(pod, resource)
                _confirm([made] if pod.life is PodStage.RUNNING else [])
        self._book.changed()

    def _guess_again(self, guesses: Mapping[tuple[str, str], Sequence[str]]) -> None:
        """Guess other ids for pods whose guessed ones turned out to be another's."""
        for (uid, resource), names in guesses.items():
            self.recall(uid, {resource: names})

    # --- what the kubelet asks --------------------------------------------------------------

    def awaits(self, resource: str, size: int) -> bool:
        """Return whether a known pod has a container that still has to get ``size`` ids."""
        return bool(self._turns.asking(resource, size))

    def strangers(self) -> frozenset[tuple[str, str]]:
        """Return (namespace, name) of each pod that only the kubelet's last list has."""
        named = self._turns.known or frozenset()
        return named - {(pod.namespace, pod.name) for pod in self._book.pods.values()}

    def preferred(
        self, resource: str, available: Sequence[str], must: Sequence[str], size: int
    ) -> tuple[str, ...]:
        """Return ``size`` of ``available``, ``must`` among them; fewer where there are fewer."""
        stock = self._book.stocks.get(resource)
        fixed, there = dict.fromkeys(must), dict.fromkeys(available)
        if stock is None or any(each not in stock.by_id for each in fixed):
            return tuple(fixed | there)[: max(size, 0)]
        have = [o for o in stock.offers if o.id in there and o.id not in fixed]
        must_have = [stock.by_id[each] for each in fixed]
        pod = self._turns.asking_pod(stock, size, must_have, have)
        uid = "" if pod is None else pod.uid
        if pod is not None:
            self._book.choose_for(pod, stock, have)
        near_to = uid or self._turns.current
        chosen = self._book.pick(stock, uid, near_to, have, must_have, size)
        ids = tuple(offer.id for offer in chosen)
        self._turns.offered[resource] = uid, frozenset(ids)
        return ids

    def doubts(self, resource: str, ids: Iterable[str]) -> bool:
        """Return whether ``listed`` might show that ids which seem to be in use are free."""
        return any(map(self._book.in_use, self._book.claims.holding(resource, ids)))

    def unvouched(self, resource: str, ids: Iterable[str]) -> bool:
        """Return whether ids are in use by a pod to which the kubelet may not have come yet.

        If the pod has ended, the API server will show it: the kubelet tells nobody else.
        """
        held = self._book.claims.holding(resource, ids)
        return any(self._book.in_use(claim) and not claim.vouched for claim in held)

    def allocate(self, resource: str, ids: Sequence[str]) -> ContainerClaim:
        """Give ids to the pod that they are for. ``AllocationRefused`` changes nothing."""
        stock = self._book.stocks.get(resource)
        if stock is None:
            raise AllocationRefused(
                RefusalCause.UNKNOWN_DEVICE, f"{resource}: not a resource of this node"
            )
        wanted = _checked(stock, ids)
        turn = self._turns.recognise(stock, wanted)
        guesses = self._book.guesses()
        self._make_way(resource, wanted, turn.owner, turn.ask)
        claim = self._book.claims.make(
            resource,
            wanted,
            turn.owner,
            "" if turn.ask is None else turn.ask.name,
            passes_on=turn.ask is not None and turn.ask.passes_on,
        )
        claim.sure = turn.sure
        self._guess_again(guesses)
        self._turns.given(claim)
        self._book.changed()
        return claim

    def starting(self, resource: str, ids: Sequence[str]) -> None:
        """Confirm that a container with these ids starts; ``AllocationRefused`` for ids of others.

        A container may start many times. An init container's ids are a part of those of the next
        containers. Ids without a claim get one: they may have been given while no plugin ran.
        """
        wanted, claims = frozenset(ids), self._book.claims
        for claim in claims.holding(resource, wanted):
            if claim.guessed and claim.ids != wanted:  # the guess was wrong
                claims.drop(claim)
        found = claims.holding(resource, wanted)
        owners = {claim.owner for claim in found}
        missed = not all(claims.owner_of(resource, each) for each in wanted)
        ask = self._first(owners, resource) if missed else None
        if len(owners) > 1 or (missed and found and ask is None and not found[0].anonymous):
            raise AllocationRefused(
                RefusalCause.TAKEN,
                f"{resource}: {_list(wanted)}: {self._held_by(found[0])}; the container that "
                "starts was given them before that: delete its pod",
            )
        if missed:
            for claim in found:
                claim.passes_on = claim.passes_on or ask is None
            owner, name = next(iter(owners), ""), "" if ask is None else ask.name
            claims.make(resource, wanted, owner, name, passes_on=ask is not None)
        started = claims.exactly(resource, wanted) or found
        _confirm(started)
        for claim in started:
            claim.vouched |= not claim.guessed
        self._book.changed()

    def _first(self, owners: set[str], resource: str) -> ContainerAsk | None:
        """Return the init container of the single owner that has no claim yet."""
        pod = self._book.pods.get(next(iter(owners), ""))
        asks = [] if pod is None else pod.asks(resource)
        served = {claim.container for owner in owners for claim in self._book.claims.of(owner)}
        return next((ask for ask, _ in asks if ask.passes_on and ask.name not in served), None)

    # --- questions ----------------------------------------------------------------------

    @property
    def serial(self) -> int:
        """The number of the last claim; an argument of ``listed``."""
        return self._book.claims.serial

    def deviations(self) -> tuple[Deviation, ...]:
        """Return all differences between plans and devices, as of now."""
        return deviations(self._book)

    def given(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return uid → resource → sorted names of the devices that the pod has."""
        owners = {claim.owner for claim in self._book.claims if not claim.anonymous}
        return {uid: self._given_to(uid) for uid in sorted(owners)}

    def ids_in_use(self) -> frozenset[str]:
        """Return all ids that a container has, of known pods and others."""
        return frozenset(each for claim in self._book.claims for each in claim.ids)

    def kept_for(self, uid: str) -> dict[str, tuple[str, ...]]:
        """Return resource → names that are kept for a pod that has not got them yet."""
        kept = self._book.reservations().kept
        mine = {resource: names[uid] for resource, names in kept.items() if names.get(uid)}
        return {resource: tuple(sorted(names.elements())) for resource, names in mine.items()}

    def _given_to(self, uid: str) -> dict[str, tuple[str, ...]]:
        found = {resource: self._book.held(uid, resource) for resource in self._book.stocks}
        return {r: tuple(sorted(names.elements())) for r, names in found.items() if names}

    def validate(self) -> None:
        """Raise ``AssertionError`` where claims or reservations contradict each other."""
        self._book.validate()

    # --- taking -----------------------------------------------------------------------------

    def _make_way(
        self, resource: str, ids: frozenset[str], owner: str, ask: ContainerAsk | None
    ) -> None:
        """Release what stands in the way of a new claim. Raises ``AllocationRefused``."""
        stale = []
        for claim in self._book.claims.holding(resource, ids):
            another = ask is None or ask.name != claim.container
            if claim.passes_on and another and claim.owner == owner:
                continue
            if self._book.in_use(claim):
                raise AllocationRefused(
                    RefusalCause.TAKEN,
                    f"{resource}: {_list(claim.ids & ids)}: {self._held_by(claim)}; if the "
                    "kubelet has lost its checkpoint, restart the pods of this node",
                )
            stale.append(claim)
        for claim in stale:
            self._book.claims.drop(claim)

    def _held_by(self, claim: ContainerClaim) -> str:
        pod = self._book.pods.get(claim.owner)
        who = "a container" if pod is None else f"pod {pod.namespace}/{pod.name}"
        container = f", container {claim.container}" if claim.container else ""
        late = "" if claim.vouched else ", which the kubelet has not listed since it started"
        return f"in use by {who}{container}{late}"


def _confirm(claims: Iterable[ContainerClaim]) -> None:
    for claim in claims:
        claim.stage = ClaimStage.CONFIRMED


def _checked(stock: IdStock, ids: Sequence[str]) -> frozenset[str]:
    """Return the ids as a set. Raises ``AllocationRefused`` for ids that no pod can be given."""
    wanted = frozenset(ids)
    if not wanted or len(wanted) < len(ids):
        raise AllocationRefused(
            RefusalCause.BAD_REQUEST,
            f"{stock.resource}: {list(ids)}: ids must be given, and each once",
        )
    unknown = wanted - stock.by_id.keys()
    if unknown:
        raise AllocationRefused(
            RefusalCause.UNKNOWN_DEVICE,
            f"{stock.resource}: {_list(unknown)}: not offered by this node",
        )
    ill = [each for each in wanted if not stock.by_id[each].healthy]
    if ill:
        raise AllocationRefused(
            RefusalCause.UNHEALTHY,
            f"{stock.resource}: {_list(ill)}: unhealthy since it was offered",
        )
    return wanted


def _list(ids: Iterable[str]) -> str:
    return ", ".join(sorted(ids))
