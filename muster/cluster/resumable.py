"""Long computations in slices.

The planner runs on the event loop's thread. Whatever may take longer than about a
millisecond on 130,000 nodes is a generator that yields between its slices; the caller
decides how many slices it runs before it gives the loop back.
"""

from bisect import bisect
from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Yields ``None`` between slices and returns the result."""

ITEMS_PER_STEP: Final = 2048
"""Items that Python touches one by one in a slice: about half a millisecond."""

FEW: Final = 512
"""Rows that numpy goes over without a pause in between: 0.1 to 0.5 ms from one pause to the next.

On a smaller cluster the pauses would take longer than what lies between them.
"""


def run(steps: Generator[object, None, T]) -> T:
    """Run a sliced computation to its end and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def sorted_order(keys: Sequence[str]) -> Steps[NDArray[np.int64]]:
    """Return int64 indices of ``keys`` in ascending order of the keys, which are distinct.

    Sample sort: a sample, evenly drawn from ``keys``, is sorted and yields the dividers, one for
    about ``ITEMS_PER_STEP`` keys. Each key is put into the part between two dividers where it
    belongs, and each part is sorted by itself::

        keys      d a f c b e      dividers c
        between   [a c b] [d f e]  sorted one by one: a b c │ d e f
    """
    by_key: Callable[[int], str] = keys.__getitem__
    dividers = _dividers(keys)
    parts: list[list[int]] = [[] for _ in range(len(dividers) + 1)]
    for index, key in enumerate(keys):
        parts[bisect(dividers, key)].append(index)
        if index % ITEMS_PER_STEP == ITEMS_PER_STEP - 1:
            yield
    order: list[NDArray[np.int64]] = []
    for part in parts:
        order.append(np.array(sorted(part, key=by_key), dtype=np.int64))
        yield
    return np.concatenate(order)


def _dividers(keys: Sequence[str]) -> list[str]:
    parts = len(keys) // ITEMS_PER_STEP
    if not parts:
        return []
    per_part = max(1, ITEMS_PER_STEP // parts)  # the sample itself is sorted in one slice
    sample = sorted(keys[:: max(1, len(keys) // (parts * per_part))])
    return sample[per_part::per_part]
