"""What a pod takes of each device when its containers run one after another. Pure.

Containers run together, after the init containers, which run one by one. A sidecar starts in the
order of the init containers and stays. So a pod has *phases*::

    phase 0   the containers and all sidecars
    phase k   one init container and the sidecars that started before it

and takes of a device what the phase with most of it takes, for each counter alone. A placed
share holds what it adds to that: the shares of a pod on a device add up to its largest phase, in
whatever order they are counted, and claims stay sums.

Only parts of devices have phases (``Milli``, ``Memory``). What is counted in pieces, MIG instances
for one, is asked for in the largest number that a phase needs, and held in every phase.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from muster.cluster.devices.onenode import LayoutNeed, PlacedShare
from muster.cluster.specs.deviceasks import EVERY

Amounts = tuple[int, int, int]  # milli-devices, MiB, replicas
_NOTHING: Final[Amounts] = (0, 0, 0)


class NeedShare(NamedTuple):
    """A share of a need on a device, all of it."""

    need: int
    share: PlacedShare


def in_phases(needs: Sequence[LayoutNeed]) -> bool:
    """Return whether not all of a pod's containers run together."""
    return any(need.phases != needs[0].phases for need in needs)


@dataclass(slots=True)
class PodUse:
    """What one pod takes of each device by now, phase by phase."""

    #: those that any of its needs is of
    phases: tuple[int, ...]
    _uses: dict[int, dict[int, Amounts]] = field(default_factory=dict)

    @classmethod
    def of(cls, needs: Iterable[LayoutNeed]) -> "PodUse":
        """Return the use of a pod that has nothing yet."""
        bits = 1  # phase 0 is there, whatever else is
        for need in needs:
            bits |= 0 if need.phases == EVERY else need.phases
        return cls(tuple(n for n in range(bits.bit_length()) if bits >> n & 1))

    def largest(self, device: int) -> Amounts:
        """Return what the pod takes of a device: the most of each counter."""
        return _largest(self._uses.get(device, {}).values())

    def beside(self, device: int, phases: int) -> Amounts:
        """Return the most that the pod takes of a device in these phases."""
        used = self._uses.get(device, {})
        return _largest(used.get(phase, _NOTHING) for phase in self._of(phases))

    def signature(self, device: int) -> tuple[tuple[int, Amounts], ...]:
        """Return what tells devices apart of which the pod takes different amounts."""
        used = self._uses.get(device, {})
        return tuple(sorted((phase, amounts) for phase, amounts in used.items() if any(amounts)))

    def add(self, share: PlacedShare, phases: int) -> PlacedShare:
        """Count a whole share; return it with what it adds to the largest phase."""
        before = self.largest(share.device)
        self._count(share, phases, 1)
        after = self.largest(share.device)
        milli, memory, units = (new - old for new, old in zip(after, before, strict=True))
        return share._replace(milli=milli, memory=memory, units=units)

    def remove(self, share: PlacedShare, phases: int) -> None:
        """Take back a whole share that was counted."""
        self._count(share, phases, -1)

    def _count(self, share: PlacedShare, phases: int, sign: int) -> None:
        used = self._uses.setdefault(share.device, {})
        for phase in self._of(phases):
            milli, memory, units = used.get(phase, _NOTHING)
            used[phase] = (
                milli + sign * share.milli,
                memory + sign * share.memory,
                units + sign * share.units,
            )

    def _of(self, phases: int) -> Iterator[int]:
        return (phase for phase in self.phases if phases >> phase & 1)


def beyond(needs: Sequence[LayoutNeed], placed: Iterable[NeedShare]) -> list[PlacedShare]:
    """Return the shares of a pod, each with what it adds to those before it."""
    use = PodUse.of(needs)
    return [use.add(each.share, needs[each.need].phases) for each in placed]


def _largest(uses: Iterable[Amounts]) -> Amounts:
    most = _NOTHING
    for milli, memory, units in uses:
        most = (max(most[0], milli), max(most[1], memory), max(most[2], units))
    return most
