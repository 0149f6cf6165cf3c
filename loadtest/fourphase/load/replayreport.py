"""What is replayed of a trace instead of the phases: what was asked for, and what came of it."""

from dataclasses import dataclass
from typing import Final

JOBS: Final = 500
LOAD: Final = 0.7  # as `muster bench trace`: the Philly trace hardly waits for GPUs alone
TURN_S: Final = 120.0  # seconds in which the jobs arrive where no speed is named


@dataclass(frozen=True, slots=True)
class Replay:
    """What was asked for.

    ``jobs``: consecutive ones, drawn by the seed. ``load``: GPUs asked for, as a share of the
    fleet's. ``speed``: seconds of the trace in one second; ``None``: all arrive in ``TURN_S``.
    """

    trace: str
    jobs: int = JOBS
    load: float = LOAD
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What is played. ``jobs`` arrive within ``arriving_s``, ``earlier`` are there before.

    ``closer``: how many times closer than in the trace submissions are, before ``speed``;
    ``gangs``: jobs of several pods; ``too_large``: jobs left out because the empty fleet cannot
    hold them; ``rounded_up``: tasks that asked for a part of a GPU and ask for a whole one here.
    """

    name: str
    source: str
    jobs: int
    gangs: int
    earlier: int
    load: float
    speed: float
    closer: float
    arriving_s: float
    too_large: int
    rounded_up: int
