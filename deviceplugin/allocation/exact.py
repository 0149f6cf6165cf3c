"""The best set of at most 16 devices, and what it leaves, exactly.

The rule is go-gpuallocator's best effort (gpuallocator/besteffort_policy.go): cut all that is
available into sets of the size that is asked for, so that the scores of all sets together are
best, and take the best of these sets. So the set that is taken never spoils what the next pods
of that shape could have. It enumerates partitions, millions of them for 16 devices; here it is
dynamic programming over what is left:

    best(left) = max over sets that hold the first device of ``left``: score(set) + best(left - set)

Equivalent devices are interchangeable, so ``left`` and sets are not masks of devices but counts of
equivalent devices per class, packed into one integer with a guard bit per class:
``left | guards - set`` keeps all guards exactly where the set is to be had. When the number does
not come out even, one set is smaller. Ties between partitions go as in go-gpuallocator, by the
order of their sets; of a partition the best set is taken, then the one that is nearest to the
fewest others, then by index. Classes are runs of devices here, since that order is by device.
What was found out is kept for the next question, as it does not depend on what is available.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from deviceplugin.allocation.pairs import Pairs

MOST: Final = 16
_BITS: Final = 6  # a count up to 16 and its guard
_COUNT: Final = (1 << (_BITS - 1)) - 1


class _Shape(NamedTuple):
    """A set by counts: packed, and the scores of its pairs."""

    packed: int
    score: int


class ExactChooser:
    """Answers for one matrix of pairs; several thousand integers of memory at most."""

    def __init__(self, pairs: Pairs) -> None:
        self._pairs = pairs
        self._classes = _runs(pairs.classes)
        self._guards = sum(1 << (_BITS * c + _BITS - 1) for c in range(len(self._classes)))
        self._shapes: dict[int, list[list[_Shape]]] = {}
        self._firsts: dict[tuple[int, int, int], list[_Shape]] = {}
        self._best: dict[tuple[int, int], tuple[int, _Shape]] = {}
        self._class_of = {i: c for c, members in enumerate(self._classes) for i in members}

    def choose(self, available: Sequence[int], must: Sequence[int], size: int) -> tuple[int, ...]:
        """Return the best ``size`` indices of ``available``, ``must`` among them, sorted.

        ``must`` is part of ``available``, and ``len(must) < size < len(available)``.
        """
        left = self._pack(available)
        pull = self._pull(left)
        if must:
            shape = self._best_with(left, self._pack(must), size, pull)
        else:
            sets = self._partition(left, size)
            shape = max(sets, key=lambda one: (one.score, -self._pulled(one.packed, pull)))
        return self._members(shape.packed, available, must)

    def _best_with(self, left: int, must: int, size: int, pull: Sequence[int]) -> _Shape:
        """Return the set around ``must``: it and the best partition of the rest count."""
        fitting = [
            shape
            for shapes in self._shapes_of(size)
            for shape in shapes
            if self._within(shape.packed, left) and self._within(must, shape.packed)
        ]
        return max(
            fitting,
            key=lambda one: (
                one.score + self._value(left - one.packed, size),
                one.score,
                -self._pulled(one.packed, pull),
            ),
        )

    def _partition(self, left: int, size: int) -> Iterator[_Shape]:
        """Yield the full sets of the best partition, in the order of their first devices."""
        while left:
            _, shape = self._solve(left, size)
            if self._total(shape.packed) == size:
                yield shape
            left -= shape.packed

    def _value(self, left: int, size: int) -> int:
        return self._solve(left, size)[0] if left else 0

    def _solve(self, left: int, size: int) -> tuple[int, _Shape]:
        """Return the best partition's score and its first set."""
        known = self._best.get((left, size))
        if known is not None:
            return known
        total = self._total(left)
        if total <= size:  # nothing to choose
            score = self._score([(c, many) for c, many in enumerate(self._counts(left)) if many])
            self._best[left, size] = score, _Shape(left, score)
            return self._best[left, size]
        first = ((left & -left).bit_length() - 1) // _BITS
        best: tuple[int, _Shape] | None = None
        for shape in self._firsts_of(first, size, total % size):
            if not self._within(shape.packed, left):
                continue
            score = shape.score + self._value(left - shape.packed, size)
            if best is None or score > best[0]:
                best = score, shape
        if best is None:
            raise AssertionError("something is left, so some set holds its first device")
        self._best[left, size] = best
        return best

    # --- sets by counts -------------------------------------------------------------------

    def _firsts_of(self, first: int, size: int, rest: int) -> list[_Shape]:
        """Return the sets of ``size`` or ``rest`` devices with the class ``first`` as their first.

        They are in go-gpuallocator's order, by which it breaks ties between partitions
        (``iterateGPUPartitions``): by their devices, where a smaller set is filled up with devices
        after all others.
        """
        found = self._firsts.get((first, size, rest))
        if found is None:
            shapes = [self._shapes_of(each)[first] for each in (size, rest) if each]
            found = [*heapq.merge(*shapes, key=lambda one: self._order(one.packed, size))]
            self._firsts[first, size, rest] = found
        return found

    def _order(self, packed: int, size: int) -> list[int]:
        """Return the class of each device of a set, and of those it is filled up with."""
        order = [c for c, many in enumerate(self._counts(packed)) for _ in range(many)]
        return order + [len(self._classes)] * (size - len(order))

    def _shapes_of(self, size: int) -> list[list[_Shape]]:
        """Return all sets of a size by the class of their first device, in order of index."""
        found = self._shapes.get(size)
        if found is None:
            found = self._shapes[size] = [
                list(self._grow(first, size)) for first in range(len(self._classes))
            ]
        return found

    def _grow(self, first: int, size: int) -> Iterator[_Shape]:
        most = min(len(self._classes[first]), size)
        for count in range(most, 0, -1):
            yield from self._fill(first, size - count, [(first, count)])

    def _fill(self, last: int, missing: int, taken: list[tuple[int, int]]) -> Iterator[_Shape]:
        """Yield ``taken`` with ``missing`` more devices of the classes after ``last``."""
        if not missing:
            yield _Shape(sum(many << (_BITS * c) for c, many in taken), self._score(taken))
            return
        for following in range(last + 1, len(self._classes)):
            most = min(len(self._classes[following]), missing)
            for many in range(most, 0, -1):
                yield from self._fill(following, missing - many, [*taken, (following, many)])

    def _score(self, taken: list[tuple[int, int]]) -> int:
        total = 0
        for place, (one, count) in enumerate(taken):
            total += count * (count - 1) // 2 * self._between(one, one)
            total += sum(count * many * self._between(one, c) for c, many in taken[place + 1 :])
        return total

    def _between(self, one: int, other: int) -> int:
        """Return the score of any pair of two classes, or of two members of one."""
        mine, theirs = self._classes[one], self._classes[other]
        if one != other:
            return self._pairs.rows[mine[0]][theirs[0]]
        return self._pairs.rows[mine[0]][mine[1]] if len(mine) > 1 else 0

    # --- packing --------------------------------------------------------------------------

    def _pack(self, devices: Sequence[int]) -> int:
        return sum(1 << (_BITS * self._class_of[device]) for device in devices)

    def _within(self, part: int, whole: int) -> bool:
        return ((whole | self._guards) - part) & self._guards == self._guards

    def _counts(self, packed: int) -> list[int]:
        return [packed >> (_BITS * c) & _COUNT for c in range(len(self._classes))]

    def _total(self, packed: int) -> int:
        return sum(self._counts(packed))

    def _pull(self, left: int) -> list[int]:
        """Return, per class, how near one of it is to all that is available."""
        counts = self._counts(left)
        return [
            sum(many * self._between(c, d) for d, many in enumerate(counts))
            - (self._between(c, c) if counts[c] else 0)
            for c in range(len(counts))
        ]

    def _pulled(self, packed: int, pull: Sequence[int]) -> int:
        return sum(map(int.__mul__, self._counts(packed), pull))

    def _members(
        self, packed: int, available: Sequence[int], must: Sequence[int]
    ) -> tuple[int, ...]:
        """Return devices for the counts: ``must``, then the first of each class."""
        counts, chosen = self._counts(packed), list(must)
        for device in must:
            counts[self._class_of[device]] -= 1
        for device in sorted(set(available) - set(must)):
            if counts[self._class_of[device]] > 0:
                counts[self._class_of[device]] -= 1
                chosen.append(device)
        return tuple(sorted(chosen))


def _runs(classes: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the classes cut where another class's devices are in between, by index."""
    runs: list[list[int]] = []
    owner = {device: number for number, members in enumerate(classes) for device in members}
    for device in sorted(owner):
        if runs and owner[runs[-1][-1]] == owner[device]:
            runs[-1].append(device)
        else:
            runs.append([device])
    return tuple(map(tuple, runs))
