"""The model of Lublin and Feitelson, beside what its published parameters say.

The expected values are computed here another way: shares by the cumulative distribution of the two
stages, arrivals by the incomplete gamma function.
"""

import math
import random
from collections import Counter

import numpy as np
import pytest

from loadtest.traces.lublin import activity, lublin, run_time, size

DRAWS = 20_000


def below(logarithm: float) -> float:
    """Return how probable a smaller binary logarithm is: 1.2 to 5.5 (87.5 %), then to 8."""
    first = min(max((logarithm - 1.2) / (5.5 - 1.2), 0.0), 1.0)
    second = min(max((logarithm - 5.5) / (8.0 - 5.5), 0.0), 1.0)
    return 0.875 * first + 0.125 * second


def expected_share(gpus: int) -> float:
    """Return the probability of a size."""
    others = 1.0 - 0.2927 - 0.6686
    low, high = math.log2(gpus - 0.5), math.log2(gpus + 0.5)
    found = others * (below(high) - below(low))
    if gpus == 1:
        return 0.2927 + found
    if gpus & (gpus - 1) == 0:
        exponent = gpus.bit_length() - 1
        found += 0.6686 * (below(exponent + 0.5) - below(exponent - 0.5))
    return found


def test_sizes_come_as_often_as_the_two_stages_say() -> None:
    chance = random.Random(7)
    counts = Counter(size(chance) for _ in range(DRAWS))
    assert sum(expected_share(gpus) for gpus in range(1, 257)) == pytest.approx(1.0)
    for gpus in range(1, 257):
        share = expected_share(gpus)
        deviation = math.sqrt(DRAWS * share * (1.0 - share))
        assert abs(counts[gpus] - DRAWS * share) <= 4.5 * deviation, gpus
    assert set(counts) <= set(range(1, 257))


@pytest.mark.parametrize(("gpus", "short"), [(1, 0.6956), (64, 0.5066), (256, 0.0)])
def test_the_larger_a_job_the_more_often_it_runs_long(gpus: int, short: float) -> None:
    """Short runs: a mean logarithm of 6.57 x 0.823; long ones: 639.1 x 0.0156."""
    chance = random.Random(gpus)
    runs = [math.log(run_time(gpus, chance)) for _ in range(DRAWS)]
    expected = short * 6.57 * 0.823 + (1.0 - short) * 639.1 * 0.0156
    assert np.mean(runs) == pytest.approx(expected, abs=0.06)
    assert max(runs) <= 12.0


def incomplete_gamma(x: float, shape: float) -> float:
    """Return the regularised lower incomplete gamma function, by its power series."""
    term = total = 1.0 / shape
    for step in range(1, 500):
        term *= x / (shape + step)
        total += term
    return total * math.exp(-x + shape * math.log(x) - math.lgamma(shape))


def test_arrivals_follow_the_gamma_of_the_day() -> None:
    found = activity()
    half_hours = range(11, 59)
    expected = [
        incomplete_gamma((each + 0.5) / 5.2740, 6.1271)
        - incomplete_gamma((each - 0.5) / 5.2740, 6.1271)
        for each in half_hours
    ]
    mean = sum(expected) / 48
    for each, weight in zip(half_hours, expected, strict=True):
        assert found[(each - 1) % 48] == pytest.approx(weight / mean, rel=1e-3)
    assert np.argmax(found) == 26  # most jobs come from 13:00 on
    assert np.argmin(found) == 9  # the fewest before 5:00


def test_jobs_come_as_often_in_each_half_hour_as_it_is_active() -> None:
    jobs = lublin(DRAWS, seed=3).jobs
    counts = np.bincount([int(job.arrival % 86_400 // 1800) for job in jobs], minlength=48)
    shares = counts / counts.mean()
    assert np.corrcoef(shares, activity())[0, 1] > 0.95


def test_gaps_are_on_average_those_of_the_truncated_gamma() -> None:
    """The mean of e^g for g of gamma(6.355, 0.8531) up to 13, by numerical integration."""
    shape, scale = 6.0415 * 1.0519, 0.8531
    grid = np.linspace(1e-6, 13.0, 200_001)
    density = grid ** (shape - 1.0) * np.exp(-grid / scale)
    mean = np.trapezoid(density * np.exp(grid), grid) / np.trapezoid(density, grid)
    jobs = lublin(100_000, seed=1).jobs
    assert (jobs[-1].arrival - jobs[0].arrival) / (len(jobs) - 1) == pytest.approx(mean, rel=0.06)


def test_a_seed_makes_the_same_jobs_again() -> None:
    assert lublin(50, seed=4) == lublin(50, seed=4) != lublin(50, seed=5)
    arrivals = [job.arrival for job in lublin(500, seed=4).jobs]
    assert arrivals == sorted(arrivals)
