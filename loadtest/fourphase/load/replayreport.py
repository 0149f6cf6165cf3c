"""What is replayed of a trace instead of the phases: what was asked for, and what came of it."""

from dataclasses import dataclass
from typing import Final

JOBS: Final = 500
LOAD: Final = 0.7  # as `muster bench trace`: the Philly trace hardly waits for GPUs alone
TURN_S: Final = 120.0  # seconds in which the jobs arrive where no speed is named


@dataclass(frozen=True, slots=True)
class Replay:
    """What was asked for."""

    trace: str
    #: Number of consecutive jobs; the seed decides which.
    jobs: int = JOBS
    #: GPUs asked for, as a share of the fleet's GPUs.
    load: float = LOAD
    #: Seconds of the trace in one second; ``None``: all arrive in ``TURN_S``.
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What is played. ``jobs`` arrive within ``arriving_s``, ``earlier`` are there before."""

    name: str
    source: str
    jobs: int
    #: Number of jobs with several pods.
    gangs: int
    earlier: int
    load: float
    speed: float
    #: How many times closer submissions are than in the trace, apart from ``speed``.
    closer: float
    arriving_s: float
    #: Jobs left out because the empty fleet cannot hold them.
    too_large: int
    #: Tasks that asked for a part of a GPU and ask for a whole one here.
    rounded_up: int
