"""Jobs as users submit them: with an estimate of the run time, with a bad one, or with none.

None of the traces that can be had has its users' own estimates, so they are drawn.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loadtest.traces.trace import Job

ESTIMATES: Final = ("exact", "over", "absent")
"""``exact``: the run time; ``over``: up to five times it, uniformly; ``absent``: none for a part of
the jobs, the run time for the others."""
MOST_OVER: Final = 5.0
ABSENT: Final = 0.3


@dataclass(frozen=True, slots=True)
class Submission:
    """A job, its place in the order of submission, and what its user says of its run time."""

    number: int
    job: Job
    #: Seconds that it runs at most, ``None``: its user does not say.
    estimate: float | None

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang."""
        return self.job.gpus


def submissions(jobs: Sequence[Job], estimates: str, seed: int) -> list[Submission]:
    """Return the jobs in their order, with estimates drawn by seed; see ``ESTIMATES``."""
    chance = random.Random(f"{estimates} {seed}")
    return [
        Submission(number, job, _estimate(job.duration, estimates, chance))
        for number, job in enumerate(jobs)
    ]


def _estimate(seconds: float, estimates: str, chance: random.Random) -> float | None:
    if estimates == "over":
        return seconds * chance.uniform(1.0, MOST_OVER)
    if estimates == "absent" and chance.random() < ABSENT:
        return None
    return seconds
