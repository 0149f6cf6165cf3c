"""Jobs of a parallel computer, made by the model of Lublin and Feitelson.

U. Lublin and D. Feitelson, "The workload on parallel supercomputers: modeling the characteristics
of rigid jobs", Journal of Parallel and Distributed Computing 63(11), 2003. The numbers are those
of batch jobs in the authors' program m_lublin99.c, which the Parallel Workloads Archive publishes::

    size      serial, or 2 to the power of a number from one of two uniform stages;
              two thirds of all jobs have that number rounded, so that their size is a power of two
    run time  e to the power of a gamma number; of two gammas the shorter one is the rarer, the
              larger the job
    gap       e to the power of a gamma number, in seconds of mean activity; by night less of it
              passes in an hour than by day

The model knows no users and no estimates of run times.
"""

import math
import random
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loadtest.traces.trace import Job, Trace

LARGEST: Final = 256
"""GPUs of the largest job, for which the stages below are set."""

SERIAL: Final = 0.2927
POWER_OF_TWO: Final = 0.6686
STAGES: Final = (1.2, 5.5, 8.0)
"""Binary logarithms of sizes: from, between the stages, to. As the program advises, the last is
that of the machine, and the middle 2.5 below it."""
FIRST_STAGE: Final = 0.875

SHORT: Final = (6.57, 0.823)
LONG: Final = (639.1, 0.0156)
"""Shape and scale of the gammas of run times."""
SHORT_SHARE: Final = (0.6986, -0.003)
"""Of the short gamma: its share, and what each GPU adds to it."""
LONGEST: Final = 12.0
"""The natural logarithm of seconds; longer ones are drawn again (two days)."""

GAP: Final = (6.0415 * 1.0519, 0.8531)
"""Shape at rush hours times the ratio of all hours to them, and scale."""
LONGEST_GAP: Final = 13.0
DAY: Final = (6.1271, 5.2740)
"""Shape and scale of the gamma of arrivals over the day, in half hours."""
DAY_BEGINS: Final = 11
"""The half hour that the gamma's first falls into."""
HALF_HOURS: Final = 48
HALF_HOUR_S: Final = 1800.0
DAY_S: Final = HALF_HOURS * HALF_HOUR_S


def lublin(jobs: int, *, seed: int = 0) -> Trace:
    """Make ``jobs`` jobs of 1 to 256 GPUs, all of one tenant, from midnight on."""
    chance = random.Random(seed)
    made = []
    for number, arrival in enumerate(_arrivals(jobs, chance)):
        gpus = size(chance)
        made.append(Job(f"job-{number:05d}", "batch", gpus, arrival, run_time(gpus, chance)))
    return Trace("the model of Lublin and Feitelson, batch jobs", tuple(made))


def size(chance: random.Random) -> int:
    """Draw how many GPUs a job asks for."""
    kind = chance.random()
    if kind <= SERIAL:
        return 1
    low, middle, high = STAGES
    stage = (low, middle) if chance.random() <= FIRST_STAGE else (middle, high)
    logarithm = chance.uniform(*stage)
    if kind <= SERIAL + POWER_OF_TWO:
        logarithm = math.floor(logarithm + 0.5)
    return math.floor(2**logarithm + 0.5)


def run_time(gpus: int, chance: random.Random) -> float:
    """Draw the whole seconds for which a job of a size runs, at least one."""
    base, slope = SHORT_SHARE
    shape = SHORT if chance.random() <= base + slope * gpus else LONG
    return max(1.0, math.floor(math.exp(_gamma_within(shape, LONGEST, chance))))


def activity() -> NDArray[np.float64]:
    """Return how many jobs arrive in each half hour of the day from midnight on; the mean is 1."""
    shape, scale = DAY
    middles = np.arange(DAY_BEGINS, DAY_BEGINS + HALF_HOURS)[:, None] + np.linspace(-0.5, 0.5, 101)
    density = middles ** (shape - 1.0) * np.exp(-middles / scale)
    weights = np.zeros(HALF_HOURS)
    weights[(middles[:, 50].astype(int) - 1) % HALF_HOURS] = np.trapezoid(density, axis=1)
    result: NDArray[np.float64] = weights / weights.mean()
    return result


def _arrivals(jobs: int, chance: random.Random) -> list[float]:
    """Return seconds since midnight; the time at which so much activity has passed."""
    passed = np.concatenate([[0.0], np.cumsum(activity())]) * HALF_HOUR_S
    gaps = (math.exp(_gamma_within(GAP, LONGEST_GAP, chance)) for _ in range(jobs))
    days, rest = np.divmod(np.array(list(accumulate(gaps))), DAY_S)
    times = days * DAY_S + np.interp(rest, passed, np.arange(HALF_HOURS + 1) * HALF_HOUR_S)
    found: list[float] = np.floor(times).tolist()
    return found


def _gamma_within(shape: tuple[float, float], most: float, chance: random.Random) -> float:
    return next(number for number in _gammas(shape, chance) if number <= most)


def _gammas(shape: tuple[float, float], chance: random.Random) -> Iterator[float]:
    while True:
        yield chance.gammavariate(*shape)
