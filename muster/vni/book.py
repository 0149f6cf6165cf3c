"""Which gang has which VNI: the leader's book, where each line is an object in the API server.

::

              claim             made (the object is there)
     FREE ───────────► CLAIMED ─────────────────────────────► HELD
      ▲  ▲               │  │ no answer: it may be there          │ the gang has ended
      │  │ refused       │  └──► the next list shows: HELD, FREE  │ (deletion is asked for)
      │  └───────────────┘                                        ▼
      │                     no node has a device of it        LEAVING
      └───────────────────────────────────────────────────────────┘

An object is named after its VNI, so two leaders cannot both create it: the API server refuses the
second one. The book adds that a gang has one network only, and that a VNI is not given again while
a node may still carry its packets. VNIs are given in turn: the one that was freed last comes last.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from muster.cluster.ids import GangKey
from muster.vni.pools import JobNetworkPool


class VniStanding(StrEnum):
    """See the drawing in the module's docstring; a free VNI is not in the book."""

    CLAIMED = "claimed"
    HELD = "held"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Line:
    """One VNI that is not free."""

    vni: int
    #: The gang that it was given to.
    gang: GangKey
    #: Name of its pool.
    pool: str
    #: The state of its object.
    standing: VniStanding


@dataclass(frozen=True, slots=True)
class ChosenVni:
    """A free VNI."""

    vni: int
    #: The pool that it is from.
    pool: JobNetworkPool


@dataclass(frozen=True, slots=True)
class Exhausted:
    """No pool has a free VNI."""

    #: The pools, and how many of their VNIs are used.
    message: str


@dataclass(slots=True)
class VniBook:
    """The VNIs that are not free. A change that is not in the drawing raises ``ValueError``."""

    #: By VNI.
    lines: dict[int, Line] = field(default_factory=dict)
    #: By gang, the VNI of its network, without networks that are leaving.
    _by_gang: dict[GangKey, int] = field(default_factory=dict)
    #: By pool, the VNI that was given last.
    _last: dict[str, int] = field(default_factory=dict)

    def of(self, gang: GangKey) -> Line | None:
        """Return the line of the gang's network; None where it has none, or one that is leaving."""
        vni = self._by_gang.get(gang)
        return None if vni is None else self.lines[vni]

    def choose(
        self, pools: Sequence[JobNetworkPool], shunned: Container[int] = ()
    ) -> ChosenVni | Exhausted:
        """Return a free VNI of the first pool that has one. ``shunned``: seen in use elsewhere."""
        for pool in pools:
            for vni in self._round(pool):
                if vni not in self.lines and vni not in shunned:
                    return ChosenVni(vni, pool)
        texts = map(self._usage, pools)
        return Exhausted(f"no VNI free in pool {', nor in pool '.join(texts)}")

    def _usage(self, pool: JobNetworkPool) -> str:
        leave = sum(
            line.standing is VniStanding.LEAVING and vni in pool.range
            for vni, line in self.lines.items()
        )
        more = f", {leave} of them being taken down by their nodes" if leave else ""
        return f"{pool.name} ({self.used(pool)} of {len(pool.range)} used{more})"

    def used(self, pool: JobNetworkPool) -> int:
        """Return how many VNIs of a pool's range are not free."""
        return sum(vni in pool.range for vni in self.lines)

    def _round(self, pool: JobNetworkPool) -> Iterable[int]:
        """Yield the range from the VNI after the last given one, and round to it."""
        first, last = pool.range.first, pool.range.last
        after = self._last.get(pool.name, last) + 1
        begin = after if after in pool.range else first
        yield from range(begin, last + 1)
        yield from range(first, begin)

    def claim(self, vni: int, gang: GangKey, pool: str) -> None:
        """Note that an object of this name is about to be created."""
        if vni in self.lines or gang in self._by_gang:
            raise ValueError(f"VNI {vni} for {gang}: {self.lines.get(vni) or self.of(gang)}")
        self._put(Line(vni, gang, pool, VniStanding.CLAIMED))
        self._last[pool] = vni

    def made(self, vni: int) -> None:
        """Note that the object exists."""
        self._move(vni, VniStanding.CLAIMED, VniStanding.HELD)

    def refused(self, vni: int) -> None:
        """Note that the object was certainly not created."""
        self._expect(vni, VniStanding.CLAIMED)
        self._drop(vni)

    def leaving(self, vni: int) -> None:
        """Note that its deletion was requested; a gang that still exists can get another VNI."""
        line = self._move(vni, VniStanding.HELD, VniStanding.LEAVING)
        if self._by_gang.get(line.gang) == vni:
            del self._by_gang[line.gang]

    def gone(self, vni: int) -> None:
        """Note that the object is gone, so that the VNI is free."""
        self._expect(vni, VniStanding.LEAVING)
        self._drop(vni)

    def listed(self, found: Iterable[Line], preferred: Callable[[Line], bool]) -> list[Line]:
        """Replace the book by a complete list; return surplus lines, which are to be deleted.

        Must be called while no write is under way. If a gang has two networks, which were then not
        made by Muster, the one for which ``preferred`` holds stays, else the lower VNI.
        """
        self.lines, self._by_gang = {}, {}
        surplus: list[Line] = []
        for line in sorted(found, key=lambda line: (not preferred(line), line.vni)):
            if line.standing is VniStanding.HELD and line.gang in self._by_gang:
                surplus.append(line)
                self.lines[line.vni] = line
            else:
                self._put(line)
        return surplus

    def validate(self) -> None:
        """Raise ``AssertionError`` unless gangs and lines agree."""
        for gang, vni in self._by_gang.items():
            line = self.lines[vni]
            assert line.gang == gang, (gang, line)  # noqa: S101  tests call this
            assert line.standing is not VniStanding.LEAVING, line  # noqa: S101

    def _put(self, line: Line) -> None:
        self.lines[line.vni] = line
        if line.standing is not VniStanding.LEAVING:
            self._by_gang[line.gang] = line.vni

    def _drop(self, vni: int) -> None:
        line = self.lines.pop(vni)
        if self._by_gang.get(line.gang) == vni:
            del self._by_gang[line.gang]

    def _expect(self, vni: int, standing: VniStanding) -> Line:
        line = self.lines.get(vni)
        if line is None or line.standing is not standing:
            raise ValueError(f"VNI {vni} is not {standing}: {line}")
        return line

    def _move(self, vni: int, before: VniStanding, after: VniStanding) -> Line:
        line = self._expect(vni, before)
        self.lines[vni] = Line(vni, line.gang, line.pool, after)
        return self.lines[vni]
