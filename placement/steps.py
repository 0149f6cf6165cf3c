"""Long computations in slices.

The planner runs on the event loop's thread. Whatever may take longer than about a
millisecond on 130,000 nodes is a generator that yields between its slices; the caller
decides how many slices it runs before it gives the loop back.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
"""Yields ``None`` between slices and returns the result."""


def run(steps: Steps[T]) -> T:
    """Run a sliced computation to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
