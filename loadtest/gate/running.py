"""Which probe runs when: all of them once, then again those with ratios over their bounds."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from loadtest.gate.bounds import Bound
from loadtest.gate.judge import TRIES, Measured, Standing
from loadtest.gate.probes import PROBES

Probing: TypeAlias = Callable[[str], Mapping[str, Measured]]
"""Runs the probe of a name; returns what it measured by the name of the ratio."""


def settled(
    bounds: Sequence[Bound], probing: Probing, tell: Callable[[Standing], None]
) -> list[Standing]:
    """Measure until every bound is held or failed; ``tell`` hears of each measurement."""
    standings = {bound.name: Standing(bound) for bound in bounds}
    for _ in range(TRIES):
        wanting = [name for name, each in standings.items() if not each.settled]
        for probe, names in _by_probe(wanting).items():
            found = probing(probe)
            for name in names:
                standings[name] = standings[name].tried(found[name])
                tell(standings[name])
    return list(standings.values())


def measured_often(
    bounds: Sequence[Bound], probing: Probing, runs: int
) -> dict[str, list[Measured]]:
    """Measure everything ``runs`` times, judging nothing."""
    found: dict[str, list[Measured]] = {bound.name: [] for bound in bounds}
    for _ in range(runs):
        for probe, names in _by_probe(list(found)).items():
            figures = probing(probe)
            for name in names:
                found[name].append(figures[name])
    return found


def _by_probe(ratios: Sequence[str]) -> dict[str, list[str]]:
    """Return the probes that measure some ratios, with those ratios."""
    needed = {
        name: [ratio for ratio in probe.ratios if ratio in ratios] for name, probe in PROBES.items()
    }
    return {name: names for name, names in needed.items() if names}
