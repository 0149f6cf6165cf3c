"""A good set among more than 16 devices, in bounded time.

Sets grow by one device at a time: each of the best ``WIDTH`` tries its ``TRIES`` most promising
additions, and of all sets that come of it the best ``WIDTH`` are kept. Every class of equivalent
devices is a beginning. A set is counted per class, packed into an integer, so that sets that differ
in equivalent devices only stand for one and do not crowd the others out.

The measure is that of ``exact`` as far as it can be seen without partitions: the set's own
score, then how little the others lose by it (its *pull*: its scores with all that is available).

Steps: size * WIDTH * (sorting the classes + TRIES additions of one integer per class).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from deviceplugin.allocation.pairs import Pairs

WIDTH: Final = 8
TRIES: Final = 3
_BITS: Final = 12  # a count of equivalent devices; there are never 4,096 devices on a node
_COUNT: Final = (1 << _BITS) - 1


class _Set(NamedTuple):
    """``score`` negated, so that the best one sorts first; ``order``: ties, the first classes."""

    score: int
    pull: int
    order: int
    packed: int
    gains: list[int]
    """What one more of each class would add."""


@dataclass(frozen=True, slots=True)
class _Field:
    """The classes: scores between any two, how many may be added, and their pulls."""

    between: list[list[int]]
    room: list[int]
    pulls: list[int]
    order: list[int]
    """The classes by pull, then by index: ties between gains go by it."""

    def grown(self, one: _Set, tries: int) -> Iterator[tuple[_Set, int]]:
        """Yield the most promising sets with one more, without their gains, and its class."""
        left = tries
        for c in sorted(self.order, key=one.gains.__getitem__, reverse=True):
            if one.packed >> (_BITS * c) & _COUNT >= self.room[c]:
                continue
            bit, place = 1 << (_BITS * c), len(self.room) - c
            order = one.order - (1 << (_BITS * place))
            grown = one.score - one.gains[c], one.pull + self.pulls[c], order, one.packed + bit
            yield _Set(*grown, one.gains), c
            left -= 1
            if not left:
                return

    def next(self, beam: list[_Set], tries: int) -> list[_Set]:
        """Return the best sets that have one device more, each set once."""
        made = {each.packed: (each, c) for one in beam for each, c in self.grown(one, tries)}
        kept = sorted(made.values(), key=lambda pair: pair[0][:3])[: max(WIDTH, tries)]
        return [
            each._replace(gains=list(map(int.__add__, each.gains, self.between[c])))
            for each, c in kept
        ]


def choose(
    pairs: Pairs, available: Sequence[int], must: Sequence[int], size: int
) -> tuple[int, ...]:
    """Return ``size`` indices of ``available``, ``must`` among them, sorted.

    ``must`` is part of ``available``, and ``len(must) <= size <= len(available)``.
    """
    free, fixed = set(available), set(must)
    classes = [[i for i in one if i in free and i not in fixed] for one in pairs.classes]
    between = _between(pairs)
    counts = [sum(i in free for i in one) for one in pairs.classes]
    pulls = _pulls(between, counts)
    order = sorted((c for c, one in enumerate(classes) if one), key=lambda c: (pulls[c], c))
    field = _Field(between, [len(one) for one in classes], pulls, order)
    beam = [_Set(0, 0, 0, 0, _gains(pairs, between, must))]
    tries = len(classes)  # every class is a beginning
    for _ in range(size - len(must)):
        beam = field.next(beam, tries)
        tries = TRIES
    taken = [beam[0].packed >> (_BITS * c) & _COUNT for c in range(len(classes))]
    chosen = [i for one, many in zip(classes, taken, strict=True) for i in one[:many]]
    return tuple(sorted([*must, *chosen]))


def _between(pairs: Pairs) -> list[list[int]]:
    """Return the score of a pair of any two classes, or of two members of one."""
    first = [one[0] for one in pairs.classes]
    found = [[pairs.rows[i][j] for j in first] for i in first]
    for c, one in enumerate(pairs.classes):
        found[c][c] = pairs.rows[one[0]][one[1]] if len(one) > 1 else 0
    return found


def _gains(pairs: Pairs, between: list[list[int]], must: Sequence[int]) -> list[int]:
    gains = [0] * len(pairs.classes)
    for c, one in enumerate(pairs.classes):
        for device in must:
            if device in one:
                gains = list(map(int.__add__, gains, between[c]))
    return gains


def _pulls(between: list[list[int]], counts: list[int]) -> list[int]:
    """Return, per class, how near one of it is to all that is available."""
    return [
        sum(map(int.__mul__, row, counts)) - (row[c] if counts[c] else 0)
        for c, row in enumerate(between)
    ]
