"""The last decisions with the snapshots they were made on.

A snapshot is immutable and shares what has not changed since with the live columns, so one
more costs the pages that were written after it. Kept are decisions that changed something:
plans that were held, and the first refusal of a kind. A thousand gangs that are looked at
in vain whenever room appears leave no trace here; ``Planner.decisions`` has their last.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from cluster.snapshot import Snapshot
from decisions.question import Answer, Question


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question, the snapshot it was put to, and the answer."""

    snapshot: Snapshot
    question: Question
    answer: Answer


class History:
    """The last ``keep`` decisions, oldest first; none with ``keep`` 0."""

    def __init__(self, keep: int) -> None:
        self._asked: deque[Asked] = deque(maxlen=keep)

    def __iter__(self) -> Iterator[Asked]:
        return iter(tuple(self._asked))

    def note(self, asked: Asked) -> None:
        """Keep one more and give up the oldest."""
        self._asked.append(asked)
