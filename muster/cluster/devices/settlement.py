"""Which pod gets which devices of one node: all claims are settled anew, strongest first.

::

    given     the kubelet gave it to the pod (``muster.dev/node-allocations``): a fact
    named     its plan names it, for the node where the pod is
    spare     its plan names it, for a spare node: claimed as named or not at all
    presumed  not known which: any that suit, so that the sums are right

A given device counts as a device that the pod asks for, or else as one unit of that device, because
the pod has it whatever it asked for. Where the kubelet gave only some of the devices, the plan
names the rest. No device is given out twice, not even when a node reports it so: the first pod by
UID has it then, and the claim of the other one is *open*. The result depends on the set of claims
and not on their order.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.cluster.devices.choice import choose
from muster.cluster.devices.claims import GIVEN, PRESUMED, SPARE, Named, all_healthy, pack_claim
from muster.cluster.devices.onenode import WIDTH, Layout, LayoutNeed, PlacedShare, fits, put
from muster.cluster.devices.phases import PodUse
from muster.cluster.devices.sharenames import named_share, named_shares, share_by_name


class PodDevices(NamedTuple):
    """What one pod claims on a node."""

    #: Pod row.
    pod: int
    #: The devices that its plan names.
    named: Named
    #: Empty where no device of the node suits the pod.
    needs: tuple[LayoutNeed, ...]
    #: Names of the devices that the kubelet gave it, ``None`` where that is not known.
    given: tuple[str, ...] | None = None


@dataclass(slots=True)
class _Having:
    """The devices that a pod has so far."""

    #: What it claims.
    wish: PodDevices
    #: The shares that its plan names, ``None`` where the names cannot be right.
    planned: list[PlacedShare] | None
    #: The shares that it has, by need.
    by_need: list[list[PlacedShare]]
    #: Shares that it was given and did not ask for.
    beside: list[PlacedShare] = field(default_factory=list)
    #: Whether another pod has some of what it was given.
    lost: bool = False

    @property
    def firm(self) -> list[PlacedShare]:
        return [share for mine in self.by_need for share in mine] + self.beside

    @property
    def as_planned(self) -> bool:
        return self.planned is not None and Counter(self.firm) == Counter(self.planned)


class Settlement:
    """The devices of one node while claims on them are settled."""

    def __init__(self, layout: Layout, names: Sequence[str]) -> None:
        self._layout = all_healthy(layout)
        self._names = names
        self._index = {name: number for number, name in enumerate(names)}
        self._uses = [0] * (len(layout) * WIDTH)

    def meet(self, wishes: Sequence[PodDevices]) -> tuple[list[bytes], dict[int, Named]]:
        """Return the packed claims, and by pod row the plans that are not met as named.

        ``wishes``: one for each pod, sorted by UID.
        """
        havings = [self._begin(wish) for wish in wishes]
        for having in havings:
            if having.wish.given is not None:
                self._take_given(having, having.wish.given)
        for spare in (False, True):
            for having in havings:
                known = having.planned is not None and not having.lost
                if known and having.wish.named.spare is spare:
                    self._take_named(having, having.planned or [])
        packed = [claim for having in havings for claim in _packed(having)]
        unmet: dict[int, Named] = {}
        for having in havings:
            if having.wish.named.spare:
                if not having.wish.needs:
                    unmet[having.wish.pod] = having.wish.named  # its devices may be published later
                continue
            found = self._presume(having)
            packed += [pack_claim(having.wish.pod, share, PRESUMED) for share in found or ()]
            if found is None or having.lost or _is_otherwise(having):
                unmet[having.wish.pod] = having.wish.named
        return packed, unmet

    def _begin(self, wish: PodDevices) -> _Having:
        named = wish.named.names
        planned = named_shares(self._layout, self._names, wish.needs, named) if wish.needs else None
        return _Having(wish, planned, [[] for _ in wish.needs])

    # --- given ------------------------------------------------------------------------

    def _take_given(self, having: _Having, given: tuple[str, ...]) -> None:
        """Record what the kubelet gave: as planned if equal, else for any need that it suits."""
        if having.planned is not None and sorted(having.wish.named.names) == sorted(given):
            self._take_named(having, having.planned)
            if having.as_planned:
                return
        use, held = PodUse.of(having.wish.needs), [0] * len(given)
        for number, need in enumerate(having.wish.needs):
            mine = having.by_need[number]
            for at, name in enumerate(given):
                share = named_share(self._layout, self._index, need, name)
                if share is None or len(mine) == need.pieces or _is_double(need, mine, share):
                    continue
                if not held[at] & need.phases:
                    held[at] |= need.phases
                    self._book(having, mine, use.add(share, need.phases))
        for at, name in enumerate(given):
            extra = None if held[at] else share_by_name(self._layout, self._index, name)
            if extra is not None and extra.device not in {share.device for share in having.firm}:
                self._book(having, having.beside, extra)

    def _book(self, having: _Having, mine: list[PlacedShare], share: PlacedShare) -> None:
        if fits(self._layout, self._uses, [share]):
            put(self._uses, share)
            mine.append(share)
        else:
            having.lost = True

    # --- named ------------------------------------------------------------------------

    def _take_named(self, having: _Having, planned: list[PlacedShare]) -> None:
        """Record what a plan names: all of it, or need by need for a pod that was given some."""
        first = 0
        wanted: list[tuple[int, list[PlacedShare]]] = []
        for number, need in enumerate(having.wish.needs):
            if not having.by_need[number]:
                wanted.append((number, planned[first : first + need.pieces]))
            first += need.pieces
        whole = len(wanted) == len(having.by_need)
        for part in [wanted] if whole else [[one] for one in wanted]:
            placed = [share for _, mine in part for share in mine]
            if fits(self._layout, self._uses, placed):
                for number, mine in part:
                    having.by_need[number] = mine
                for share in placed:
                    put(self._uses, share)

    # --- presumed ---------------------------------------------------------------------

    def _presume(self, having: _Having) -> list[PlacedShare] | None:
        """Find devices for the needs that are not met; ``None``: no room for all of them."""
        missing = [
            _rest(need, mine)
            for need, mine in zip(having.wish.needs, having.by_need, strict=True)
            if len(mine) < need.pieces
        ]
        found = choose(self._layout, self._uses, tuple(missing))
        for share in found or ():
            put(self._uses, share)
        return found


def _packed(having: _Having) -> Iterable[bytes]:
    pod, named = having.wish.pod, having.wish.named
    if having.as_planned and having.planned is not None:
        return [pack_claim(pod, share, SPARE * named.spare) for share in having.planned]
    return [pack_claim(pod, share, GIVEN) for share in having.firm]


def _is_otherwise(having: _Having) -> bool:
    """Return whether a pod has other devices than its plan names."""
    return bool(having.wish.named.names) and not having.as_planned


def _is_double(need: LayoutNeed, mine: list[PlacedShare], share: PlacedShare) -> bool:
    return need.distinct and any(share.device == other.device for other in mine)


def _rest(need: LayoutNeed, mine: list[PlacedShare]) -> LayoutNeed:
    """Return the part of a need that is not met."""
    left = need._replace(pieces=need.pieces - len(mine))
    if not need.distinct:
        return left
    taken = {share.device for share in mine}
    shares = (None if device in taken else one for device, one in enumerate(need.shares))
    return left._replace(shares=tuple(shares))
