"""Which devices a pod gets whose containers run one after another. Pure.

Heaviest pieces first, each on the device to which it adds least; where that leads nowhere, the next
device is tried, ``TRIES`` in all. Devices that are alike are tried once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.devices.instances import placed_share
from muster.cluster.devices.needs import MILLI, DeviceShare
from muster.cluster.devices.onenode import WIDTH, Layout, LayoutNeed, PlacedShare, put
from muster.cluster.devices.phases import NeedShare, PodUse, beyond
from muster.cluster.specs.deviceasks import DeviceAsk

TRIES: Final = 512  # placed shares that are tried for one pod

Weight = Callable[[DeviceAsk], tuple[int, int, int]]


@dataclass(slots=True)
class PhasedSearch:
    """The search for one pod."""

    layout: Layout
    needs: tuple[LayoutNeed, ...]
    #: What others take, and what the pod takes at its largest.
    left: list[int]
    #: The need of each piece, heaviest first.
    pieces: tuple[int, ...]
    use: PodUse
    placed: list[NeedShare] = field(default_factory=list)
    tries: int = 0

    @classmethod
    def of(
        cls, layout: Layout, uses: Sequence[int], needs: tuple[LayoutNeed, ...], weight: Weight
    ) -> "PhasedSearch":
        """Return the search before it begins; ``weight``: how hard an ask is to place."""
        order = sorted(range(len(needs)), key=lambda n: weight(needs[n].ask), reverse=True)
        pieces = tuple(number for number in order for _ in range(needs[number].pieces))
        return cls(layout, needs, list(uses), pieces, PodUse.of(needs))

    def shares(self) -> list[PlacedShare] | None:
        """Return shares in the order of the needs, ``None`` where none were found."""
        if not self._all_placed():
            return None
        ordered = sorted(self.placed, key=lambda each: (each.need, each.share.device))
        return beyond(self.needs, ordered)

    def _all_placed(self) -> bool:
        """Place the pieces that are left; return whether all are."""
        if len(self.placed) == len(self.pieces):
            return True
        number = self.pieces[len(self.placed)]
        phases = self.needs[number].phases
        for share in self._candidates(number):
            self.tries += 1
            if self.tries > TRIES:
                return False
            before = self.left[:]
            put(self.left, self.use.add(share, phases))
            self.placed.append(NeedShare(number, share))
            if self._all_placed():
                return True
            self.placed.pop()
            self.left = before
            self.use.remove(share, phases)
        return False

    def _candidates(self, number: int) -> list[PlacedShare]:
        """Return the whole shares that a piece may have, the best first, of equal devices one."""
        need = self.needs[number]
        taken = {each.share.device for each in self.placed if each.need == number}
        found: dict[tuple[object, ...], tuple[tuple[int, ...], PlacedShare]] = {}
        for device, one in enumerate(need.shares):
            if one is None or (need.distinct and device in taken):
                continue
            share, spoilt = self._share(device, one)
            if share is None or not self._fits(share, need.phases):
                continue
            uses = self._uses(device)
            alike = (self.layout[device].shape, uses, device in taken, self.use.signature(device))
            key = (*self._added(share, need.phases), spoilt, *uses, device)
            found.setdefault(alike, (key, share))
        return [share for _, share in sorted(found.values())]

    def _share(self, device: int, one: DeviceShare) -> tuple[PlacedShare | None, int]:
        used = self.left[device * WIDTH + 3]
        full = bool(one.masks) and all(bits & used for _, bits in one.masks)
        if full or not self.layout[device].healthy:
            return None, 0
        return placed_share(self.layout[device].shape, self.left, device, one)

    def _uses(self, device: int) -> tuple[int, ...]:
        return tuple(self.left[device * WIDTH : (device + 1) * WIDTH])

    def _added(self, share: PlacedShare, phases: int) -> tuple[int, int, int]:
        added = self.use.add(share, phases)
        self.use.remove(share, phases)
        return added.milli, added.memory, added.units

    def _fits(self, share: PlacedShare, phases: int) -> bool:
        """Return whether a whole share fits beside others and what the pod has in its phases."""
        shape, used = self.layout[share.device].shape, self._uses(share.device)[:3]
        room = (MILLI, shape.memory, shape.units)
        added = self._added(share, phases)
        if any(
            more and has + more > most for has, more, most in zip(used, added, room, strict=True)
        ):
            return False
        at_other_times = (
            self.use.largest(share.device)[0] - self.use.beside(share.device, phases)[0]
        )
        return bool(share.milli or share.mask) or used[0] - at_other_times < MILLI
