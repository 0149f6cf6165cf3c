"""Claims that take less than they ask for, where their authors allow it (Kueue's ``minCount``).

::

    part      count   least      step 0   1   2   3   4   5   6
    driver        1       -           1   1   1   1   1   1   1
    workers       8       4           8   8   7   6   6   5   4      all parts shrink in proportion
    readers       4       2           4   4   4   3   3   3   2

A step takes one pod more away, of all parts together; the first step that fits is found by halving.
Source: kubernetes-sigs/kueue, pkg/scheduler/flavorassigner/podset_reducer.go at 0.14.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from muster.cluster.claims import ClaimPart, QuotaClaim

FoundT = TypeVar("FoundT")


def spare(claim: QuotaClaim) -> int:
    """Return how many pods a claim can do without: the number of its last step."""
    return sum(map(_spare, claim.parts))


def reduced(claim: QuotaClaim, step: int) -> QuotaClaim:
    """Return a claim that asks for less; ``step``: from 0 to ``spare``, which is above 0."""
    whole = spare(claim)
    parts = (replace(part, count=part.count - _spare(part) * step // whole) for part in claim.parts)
    return replace(claim, parts=tuple(parts))


def largest(claim: QuotaClaim, fits: Callable[[QuotaClaim], FoundT | None]) -> FoundT | None:
    """Return what ``fits`` returns for the largest claim for which it returns anything.

    It is asked about log n of n steps: whatever fits is taken to fit with fewer pods, too.
    """
    low, high, found = 1, spare(claim), None
    while low <= high:
        middle = (low + high) // 2
        answer = fits(reduced(claim, middle))
        if answer is None:
            low = middle + 1
        else:
            high, found = middle - 1, answer
    return found


def _spare(part: ClaimPart) -> int:
    return 0 if part.least is None else max(0, part.count - max(part.least, 0))
