"""Which ids to take where no plan names them.

==========  =======================================================================
whole       the best set by links and PCIe (``chooser``); NICs beside their GPUs
replicas    distributed: the device with fewest replicas given, then the one with most free;
            packed: the one with most given, then the one with fewest free;
            spread: one of which the container has none, then the one with fewest given
units       all from one device, the fullest that has enough
MIG         the instance that blocks the fewest places of other profiles, highest first
==========  =======================================================================

*NICs beside GPUs*: NICs are paired with GPUs, the nearest pair first, and every GPU gets one NIC
before any gets two. So four GPUs below four switches get one NIC below each. PCIe is a tree, and in
a tree the nearest pairs first give the best sum.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from deviceplugin.allocation.chooser import DeviceChooser
from deviceplugin.allocation.pairs import EMPTY, PairScores
from deviceplugin.allocation.settings import SharePolicy
from deviceplugin.allocation.values import IdKind, IdStock, OfferedId
from deviceplugin.model.inventory import Gpu


@dataclass(slots=True)
class Picker:
    """Picks on one node's topology."""

    topology: PairScores = EMPTY
    #: by UUID, for their MIG profiles
    gpus: Mapping[str, Gpu] = field(default_factory=dict)
    _gpu_chooser: DeviceChooser = field(init=False)
    _nic_chooser: DeviceChooser = field(init=False)

    def __post_init__(self) -> None:
        """Make the choosers, which cache their answers."""
        self._gpu_chooser = DeviceChooser(self.topology.gpus)
        self._nic_chooser = DeviceChooser(self.topology.nics)

    def pick(
        self,
        stock: IdStock,
        have: Sequence[OfferedId],
        must: Sequence[OfferedId],
        size: int,
        near: Sequence[str] = (),
        free: Sequence[OfferedId] | None = None,
    ) -> list[OfferedId]:
        """Return ``size`` offers, ``must`` first, the others of ``have``; fewer if there are.

        ``have`` and ``must`` have no id in common. ``near``: GPUs that NICs should be near to.
        ``free``: the offers that no container has, ``have`` if not given; all others of the stock
        count as given.
        """
        missing = size - len(must)
        if missing <= 0:
            return list(must)[:size]
        if len(have) <= missing:
            return [*must, *have]
        open_ = have if free is None else free
        return [*must, *self._pick(stock, have, must, missing, near, open_)]

    def _pick(
        self,
        stock: IdStock,
        have: Sequence[OfferedId],
        must: Sequence[OfferedId],
        missing: int,
        near: Sequence[str],
        free: Sequence[OfferedId],
    ) -> list[OfferedId]:
        if stock.nics and near:
            return self._beside(have, must, missing, near)
        if stock.kind is IdKind.WHOLE:
            return self._best_set(stock, have, must, missing)
        if stock.kind is IdKind.MIG:
            return self._least_spoiling(stock, have, missing)
        if stock.kind is IdKind.UNIT:
            return _from_one(have, must, missing)
        return _shares(stock, have, must, missing, free)

    def _best_set(
        self, stock: IdStock, have: Sequence[OfferedId], must: Sequence[OfferedId], missing: int
    ) -> list[OfferedId]:
        chooser = self._nic_chooser if stock.nics else self._gpu_chooser
        fixed = [offer.parent for offer in must]
        chosen = set(chooser.choose([o.parent for o in have], fixed, len(fixed) + missing))
        return [offer for offer in have if offer.parent in chosen][:missing]

    def _beside(
        self,
        have: Sequence[OfferedId],
        must: Sequence[OfferedId],
        missing: int,
        near: Sequence[str],
    ) -> list[OfferedId]:
        """Pair NICs with GPUs; each NIC of ``must`` is paired with the GPU nearest to it."""
        between = self.topology.between
        served = Counter[str]()
        for offer in must:
            served[max(near, key=lambda gpu: (-served[gpu], _near(between, offer, gpu)))] += 1
        chosen: list[OfferedId] = []
        left = list(have)
        used = Counter(offer.parent for offer in must)
        while left and len(chosen) < missing:
            least = min(served[gpu] for gpu in near)
            waiting = [gpu for gpu in near if served[gpu] == least]
            _, best, gpu = max(
                (
                    (_near(between, offer, gpu), -used[offer.parent], -place, -number),
                    offer,
                    gpu,
                )
                for place, offer in enumerate(left)
                for number, gpu in enumerate(waiting)
            )
            chosen.append(best)
            left.remove(best)
            served[gpu] += 1
            used[best.parent] += 1
        return chosen

    def _least_spoiling(
        self, stock: IdStock, have: Sequence[OfferedId], missing: int
    ) -> list[OfferedId]:
        """Take instances one by one; an instance that is not available counts as used."""
        free = {offer.name for offer in have}
        used = Counter[str]()
        for offer in stock.offers:
            if offer.name not in free:
                used[offer.parent] |= stock.slices.get(offer.name, 0)
        chosen: list[OfferedId] = []
        left = list(have)
        for _ in range(missing):
            best = min(left, key=lambda o: self._spoiled(stock, o, used))
            used[best.parent] |= stock.slices.get(best.name, 0)
            left.remove(best)
            chosen.append(best)
        return chosen

    def _spoiled(
        self, stock: IdStock, offer: OfferedId, used: Mapping[str, int]
    ) -> tuple[int, int, int]:
        """Return a sort key: slices of blocked places, then fuller GPUs, then higher slices."""
        bits, taken = stock.slices.get(offer.name, 0), used.get(offer.parent, 0)
        gpu = self.gpus.get(offer.parent)
        profiles = gpu.mig.profiles if gpu is not None and gpu.mig is not None else ()
        spoiled = sum(
            profile.size
            for profile in profiles
            for start in profile.starts
            if not (mask := ((1 << profile.size) - 1) << start) & taken and mask & bits
        )
        return (spoiled, -taken.bit_count(), -bits)


def _near(between: Mapping[tuple[str, str], int], offer: OfferedId, gpu: str) -> int:
    return between.get((offer.parent, gpu), 0)


def _by_name(have: Iterable[OfferedId]) -> dict[str, list[OfferedId]]:
    found: dict[str, list[OfferedId]] = {}
    for offer in have:
        found.setdefault(offer.name, []).append(offer)
    return found


def _by_parent(have: Iterable[OfferedId]) -> dict[str, list[OfferedId]]:
    found: dict[str, list[OfferedId]] = {}
    for offer in have:
        found.setdefault(offer.parent, []).append(offer)
    return found


def _shares(
    stock: IdStock,
    have: Sequence[OfferedId],
    must: Sequence[OfferedId],
    missing: int,
    free: Sequence[OfferedId],
) -> list[OfferedId]:
    """Take shares one by one, by the stock's policy.

    Source: NVIDIA/k8s-device-plugin internal/rm/allocate.go, ``greedyAlloc``. ``must`` counts as
    given and as the container's own. Upstream leaves further ties to the order of a Go map.
    """
    given = _given(stock, free, must)
    mine = Counter(offer.name for offer in must)
    left = _by_name(have)
    chosen: list[OfferedId] = []
    for _ in range(missing):
        name = min(left, key=lambda each: _rank(stock.shares, given[each], mine[each], left[each]))
        chosen.append(left[name].pop(0))
        mine[name] += 1
        given[name] += 1
        if not left[name]:
            del left[name]
    return chosen


def _given(stock: IdStock, free: Sequence[OfferedId], must: Sequence[OfferedId]) -> Counter[str]:
    """Return how many shares of each device are not free; those of ``must`` are not, either."""
    own = {offer.id for offer in must}
    given = Counter(offer.name for offer in stock.offers)
    given.subtract(offer.name for offer in free if offer.id not in own)
    return given


def _rank(
    policy: SharePolicy, given: int, mine: int, left: Sequence[OfferedId]
) -> tuple[int, int, int]:
    """Return a sort key: the least comes first."""
    if policy == "packed":
        return (-given, mine, len(left))
    return (given, mine, -len(left)) if policy == "distributed" else (mine, given, -len(left))


def _from_one(
    have: Sequence[OfferedId], must: Sequence[OfferedId], missing: int
) -> list[OfferedId]:
    """Take all units of one device: the one that has some taken, or the fullest with enough."""
    mine = {offer.parent for offer in must}
    rows = sorted(
        _by_parent(have).items(),
        key=lambda row: (row[0] not in mine, len(row[1]) < missing, _fill(row[1], missing)),
    )
    return [offer for _, row in rows for offer in row][:missing]


def _fill(row: Sequence[OfferedId], missing: int) -> int:
    """Return how many units stay free; rows that are too short sort by length, longest first."""
    return len(row) - missing if len(row) >= missing else -len(row)
