"""Which containers have which ids, and by what that is known.

One claim is what one container has of one resource. Its life::

                      GetPreferredAllocation        Allocate
     ┌──────────┐  names this pod's set  ┌─────────┐  this set   ┌───────────┐
     │ RESERVED ├───────────────────────►│ OFFERED ├────────────►│ ALLOCATED │◄─────────────┐
     └──────────┘                        └────┬────┘             └──┬──┬──┬──┘              │
       by the plan, or       another set came │                     │  │  │ the kubelet says│
       chosen here           ◄────────────────┘    PreStartContainer│  │  │ it is another   │
            ▲                                      or the pod runs, │  │  └ pod's: moved ───┘
            │ given to another pod by the          or List says so  ▼  │
            │ kubelet: chosen again           ┌───────────┐            │ the kubelet does not
            │                                 │ CONFIRMED │            │ know of it, or gave its
            └── (the displaced pod)           └─────┬─────┘            │ ids to another pod
                                                    │ the pod is over  ▼
                                                    │ or gone     ┌──────────┐
                                                    └────────────►│ RELEASED │
                                                                  └──────────┘

RESERVED and OFFERED are not stored here: reservations are derived from pods and claims
(``reservations``), and ``attribution`` stores the last offer. An id has at most one owner. Within
a pod it may be in several claims, where containers use devices that init containers had.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

UNKNOWN: Final = "?"
"""Beginning of the owners that stand for unknown pods; each such claim has its own owner."""


def unknown(namespace: str, name: str) -> str:
    """Return the owner for a pod that the kubelet lists and that is not known here yet."""
    return f"{UNKNOWN}{namespace}/{name}"


class ClaimStage(Enum):
    """The stages of a claim that are stored; see the drawing."""

    ALLOCATED = "allocated"
    CONFIRMED = "confirmed"


@dataclass(slots=True, eq=False)
class ContainerClaim:
    """What one container has of one resource."""

    resource: str
    #: as advertised
    ids: frozenset[str]
    #: a pod's uid, or an owner for an unknown pod
    owner: str
    #: name of the container, "" where it is not known
    container: str
    #: claims are numbered in the order in which they are made
    serial: int
    #: whether the next containers of the pod use its devices: it is a plain init container's
    passes_on: bool = False
    stage: ClaimStage = ClaimStage.ALLOCATED
    #: whether it is certainly this pod's, and not that of another pod that asks for the same
    sure: bool = False
    #: whether the ids may be only a part, or other shares of the same devices
    guessed: bool = False
    #: whether the kubelet's list has shown it
    confirmed_by_list: bool = False
    #: whether this kubelet has shown that it knows the pod: it gave, started or listed it
    #: (drawing in ``reconciliation``)
    vouched: bool = True

    @property
    def anonymous(self) -> bool:
        """Whether the pod that it belongs to is unknown."""
        return self.owner.startswith(UNKNOWN)


class Claims:
    """All claims of a node, by owner and by id."""

    def __init__(self) -> None:
        self.serial = 0
        self._of: dict[str, list[ContainerClaim]] = {}
        self._by_id: dict[tuple[str, str], list[ContainerClaim]] = {}

    def __iter__(self) -> Iterator[ContainerClaim]:
        return iter([claim for claims in self._of.values() for claim in claims])

    def make(
        self, resource: str, ids: frozenset[str], owner: str, container: str, *, passes_on: bool
    ) -> ContainerClaim:
        """Return a new claim; an empty ``owner`` becomes an owner for an unknown pod."""
        self.serial += 1
        claim = ContainerClaim(
            resource, ids, owner or f"{UNKNOWN}{self.serial}", container, self.serial, passes_on
        )
        self._add(claim)
        return claim

    def drop(self, claim: ContainerClaim) -> None:
        """Release one claim."""
        mine = self._of[claim.owner]
        mine.remove(claim)
        if not mine:
            del self._of[claim.owner]
        for each in claim.ids:
            holders = self._by_id[claim.resource, each]
            holders.remove(claim)
            if not holders:
                del self._by_id[claim.resource, each]

    def drop_owner(self, owner: str) -> None:
        """Release all claims of a pod."""
        for claim in list(self._of.get(owner, ())):
            self.drop(claim)

    def move(self, claim: ContainerClaim, owner: str, container: str) -> None:
        """Give a claim to another pod; the stage does not change."""
        self.drop(claim)
        claim.owner, claim.container = owner or f"{UNKNOWN}{claim.serial}", container
        self._add(claim)

    def of(self, owner: str, resource: str = "") -> list[ContainerClaim]:
        """Return a pod's claims, of one resource or of all, in the order they were made."""
        mine = self._of.get(owner, ())
        return [claim for claim in mine if not resource or claim.resource == resource]

    def ids_of(self, owner: str, resource: str) -> frozenset[str]:
        """Return all ids that a pod has of a resource."""
        return frozenset().union(*(claim.ids for claim in self.of(owner, resource)))

    def holding(self, resource: str, ids: Iterable[str]) -> list[ContainerClaim]:
        """Return the claims on any of some ids, each once."""
        found: dict[int, ContainerClaim] = {}
        for each in ids:
            found |= {claim.serial: claim for claim in self._by_id.get((resource, each), ())}
        return list(found.values())

    def owner_of(self, resource: str, device: str) -> str:
        """Return the owner of an id, "" where it has none."""
        holders = self._by_id.get((resource, device))
        return holders[0].owner if holders else ""

    def exactly(self, resource: str, ids: frozenset[str]) -> list[ContainerClaim]:
        """Return the claims on just these ids."""
        return [claim for claim in self.holding(resource, ids) if claim.ids == ids]

    def _add(self, claim: ContainerClaim) -> None:
        self._of.setdefault(claim.owner, []).append(claim)
        for each in claim.ids:
            self._by_id.setdefault((claim.resource, each), []).append(claim)

    def validate(self) -> None:
        """Raise ``AssertionError`` where the two views differ or an id has two owners."""
        seen: dict[tuple[str, str], list[ContainerClaim]] = {}
        for owner, claims in self._of.items():
            for claim in claims:
                if claim.owner != owner or not claim.ids:
                    raise AssertionError(f"{claim} stands under {owner}")
                for each in claim.ids:
                    seen.setdefault((claim.resource, each), []).append(claim)
        for key, claims in seen.items():
            if len({claim.owner for claim in claims}) > 1:
                raise AssertionError(f"{key} is held twice: {claims}")
            if sum(not claim.passes_on for claim in claims) > 1:
                raise AssertionError(f"{key} is in use by two containers: {claims}")
        if seen.keys() != self._by_id.keys():
            raise AssertionError("the index by id is not of these claims")
