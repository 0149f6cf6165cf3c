"""Which ids to take where no plan names them.

==========  =======================================================================
whole       the best set by links and PCIe (``chooser``); NICs beside their GPUs
replicas    spread: the device with most free first, others before the same again;
            packed: the device with fewest free first
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
    ) -> list[OfferedId]:
        """Return ``size`` offers, ``must`` first, the others of ``have``; fewer if there are.

        ``have`` and ``must`` have no id in common. ``near``: GPUs that NICs should be near to.
        """
        missing = size - len(must)
        if missing <= 0:
            return list(must)[:size]
        if len(have) <= missing:
            return [*must, *have]
        return [*must, *self._pick(stock, have, must, missing, near)]

    def _pick(
        self,
        stock: IdStock,
        have: Sequence[OfferedId],
        must: Sequence[OfferedId],
        missing: int,
        near: Sequence[str],
    ) -> list[OfferedId]:
        if stock.nics and near:
            return self._beside(have, must, missing, near)
        if stock.kind is IdKind.WHOLE:
            return self._best_set(stock, have, must, missing)
        if stock.kind is IdKind.MIG:
            return self._least_spoiling(stock, have, missing)
        if stock.kind is IdKind.UNIT:
            return _from_one(have, must, missing)
        return _packed(have, missing) if stock.packed else _spread(have, must, missing)

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


def _by_parent(have: Iterable[OfferedId]) -> dict[str, list[OfferedId]]:
    found: dict[str, list[OfferedId]] = {}
    for offer in have:
        found.setdefault(offer.parent, []).append(offer)
    return found


def _spread(have: Sequence[OfferedId], must: Sequence[OfferedId], missing: int) -> list[OfferedId]:
    """Take shares of different devices, of the device with most free shares first."""
    free = _by_parent(have)
    mine = Counter(offer.parent for offer in must)
    chosen: list[OfferedId] = []
    for _ in range(missing):
        parent = min(free, key=lambda each: (mine[each], -len(free[each])))
        chosen.append(free[parent].pop(0))
        mine[parent] += 1
        if not free[parent]:
            del free[parent]
    return chosen


def _packed(have: Sequence[OfferedId], missing: int) -> list[OfferedId]:
    """Fill one device after the other, the fullest first."""
    rows = sorted(_by_parent(have).values(), key=len)
    return [offer for row in rows for offer in row][:missing]


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
