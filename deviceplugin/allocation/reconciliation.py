"""Updates the claims by what the kubelet lists.

Each row names a container and all that it has of a resource. What a list shows is so. What it does
not show means something only where the kubelet has come to the pod: one that has just started
lists a pod when it admits it again, after a second or, without an API server, much later. Until
then only the API server knows whether the pod lives::

      recalled from the Node            allocated by this kubelet
                │                                   │
                ▼                                   ▼
          ┌───────────┐  it starts a container ┌─────────┐
          │ UNVOUCHED ├───────────────────────►│ VOUCHED │
          │           │  of the pod, or lists  │         │
          │           │  the pod               │         │
          │           │◄───────────────────────┤         │
          └─────┬─────┘  another kubelet       └────┬────┘
                │        answers                    │ the pod is over or gone on the API server,
                │ the pod is over or gone           │ or this kubelet no longer lists it
                │ on the API server, or not         ▼
                │ known there              ┌──────────┐
                └─────────────────────────►│ RELEASED │
                                           └──────────┘

What is trusted, and for what::

    pods on the API server        which pods live; plans: what each should get, never what it has
    a list of the kubelet         who has what; that a pod has ended, where it is vouched for
    the socket of the answer      whether the same kubelet answers (inode and time of its making)
    Allocate                      which ids are given, not to whom
    muster.dev/node-allocations   what was given before this program started; a list knows better
    the kubelet's checkpoint      nothing: it is read by the kubelet alone, and may be lost

A kubelet that has lost its checkpoint gives away what it does not list. So an unvouched claim still
refuses its ids to others, as ``Table`` says: what the pod had it may use now.

What a list does to a claim::

    same owner, container and ids     it stays, and is now sure
    same ids, another owner           it moves to the owner in the list
    some of the ids                   an init container had them: it moves with them
    none of the ids                   it is released, except
                                      - claims made after the kubelet was asked
                                      - unvouched claims
                                      - init containers of listed pods, which are never listed
                                        (kubernetes/kubernetes#126765)
                                      - started containers of listed pods: the kubelet has lost
                                        its checkpoint, and they still use the devices
    a row without a claim             a claim is made: the ids were given while no plugin ran
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from deviceplugin.allocation.claims import ClaimStage, ContainerClaim, unknown
from deviceplugin.allocation.tablestate import Book
from deviceplugin.allocation.values import ListedDevices, NodePod, PodStage


class _Row(NamedTuple):
    """What one container has of one resource; an unknown pod has an owner, too."""

    resource: str
    ids: frozenset[str]
    owner: str
    container: str


class Reconciliation:
    """Applies one list. ``since``: number of the last claim that it can contain."""

    def __init__(self, book: Book, since: int) -> None:
        self._book = book
        self._since = since
        self._uids = _by_name(book.pods.values())

    def take(self, listing: Sequence[ListedDevices]) -> set[str]:
        """Change the claims to what the list says; return the owners that it vouches for."""
        rows = self._rows(listing)
        listed = {self._owner(each) for each in listing}
        claims = self._book.claims
        newer = {(c.resource, each) for c in claims if c.serial > self._since for each in c.ids}
        rows = [row for row in rows if not any((row.resource, i) in newer for i in row.ids)]
        stages: dict[tuple[str, frozenset[str]], ClaimStage] = {}
        for claim in [each for each in claims if each.serial <= self._since]:
            self._compare(claim, rows, listed, stages)
        for row in rows:
            self._ensure(row, stages.get((row.resource, row.ids)))
        for claim in claims:
            claim.vouched |= claim.owner in listed
        return listed

    def _compare(
        self,
        claim: ContainerClaim,
        rows: list[_Row],
        listed: set[str],
        stages: dict[tuple[str, frozenset[str]], ClaimStage],
    ) -> None:
        """Keep, move or drop one claim."""
        touching = [r for r in rows if r.resource == claim.resource and r.ids & claim.ids]
        exact = next((row for row in touching if row.ids == claim.ids), None)
        if exact is not None and not self._is_inits(claim, exact):
            stages[claim.resource, claim.ids] = claim.stage
            if (claim.owner, claim.container) == (exact.owner, exact.container):
                claim.sure = claim.confirmed_by_list = True
            else:
                self._book.claims.drop(claim)
        elif touching:
            self._along(claim, touching)
        elif not self._stays(claim, listed):
            self._book.claims.drop(claim)

    def _is_inits(self, claim: ContainerClaim, row: _Row) -> bool:
        """Return whether a claim is an init container's and the row is another container's."""
        return claim.passes_on and claim.container != row.container

    def _along(self, claim: ContainerClaim, touching: list[_Row]) -> None:
        """Move an init container's claim to the pod whose containers use its devices."""
        owners = {row.owner for row in touching}
        if not claim.passes_on or len(owners) > 1:
            self._book.claims.drop(claim)
            return
        claim.sure = claim.confirmed_by_list = True
        owner = owners.pop()
        if owner == claim.owner and claim.container:
            return
        pod = self._book.pods.get(owner)
        asks = [] if pod is None else pod.asks(claim.resource)
        served = {each.container for each in self._book.claims.of(owner, claim.resource)}
        names = (ask.name for ask, _ in asks if ask.passes_on and ask.name not in served)
        self._book.claims.move(claim, owner, next(names, claim.container))

    def _stays(self, claim: ContainerClaim, listed: set[str]) -> bool:
        pod = self._book.pods.get(claim.owner)
        if pod is None:
            return False
        if claim.owner not in listed:
            return not claim.vouched
        started = claim.stage is ClaimStage.CONFIRMED and pod.life in (
            PodStage.WAITING,
            PodStage.RUNNING,
        )
        return claim.passes_on or started

    def _ensure(self, row: _Row, stage: ClaimStage | None) -> None:
        """Make the claim of a row unless it exists; drop the claims that contradict the row."""
        claims = self._book.claims
        held = claims.holding(row.resource, row.ids)
        if any((c.owner, c.container, c.ids) == (row.owner, row.container, row.ids) for c in held):
            return
        mine = claims.of(row.owner, row.resource)
        wrong = [c for c in mine if c.container == row.container]
        wrong += [c for c in mine if not c.container and not c.passes_on]
        wrong += [c for c in held if c not in wrong and not (c.passes_on and c.owner == row.owner)]
        for claim in wrong:
            claims.drop(claim)
        made = claims.make(row.resource, row.ids, row.owner, row.container, passes_on=False)
        pod = self._book.pods.get(row.owner)
        running = pod is not None and pod.life is PodStage.RUNNING
        made.sure = made.confirmed_by_list = True
        made.stage = ClaimStage.CONFIRMED if running else stage or ClaimStage.ALLOCATED
        if pod is not None:
            made.passes_on = any(
                ask.passes_on and ask.name == row.container for ask, _ in pod.asks(row.resource)
            )

    def _rows(self, listing: Iterable[ListedDevices]) -> list[_Row]:
        """Return one row per container and resource: kubelets list every device separately."""
        found: dict[tuple[str, str, str], frozenset[str]] = {}
        for each in listing:
            if each.resource in self._book.stocks and each.ids:
                key = each.resource, self._owner(each), each.container
                found[key] = found.get(key, frozenset()) | each.ids
        return [_Row(r, ids, owner, container) for (r, owner, container), ids in found.items()]

    def _owner(self, each: ListedDevices) -> str:
        key = each.namespace, each.pod
        return self._uids.get(key, unknown(*key))


def _by_name(pods: Iterable[NodePod]) -> dict[tuple[str, str], str]:
    """Return (namespace, name) → uid of the youngest pod; of an ended pod only without others."""
    ordered = sorted(pods, key=lambda pod: (pod.life is not PodStage.OVER, pod.order))
    return {(pod.namespace, pod.name): pod.uid for pod in ordered}
