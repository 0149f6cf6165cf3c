"""`muster bench room`: who gives way on random clusters, beside the least that would do.

::

    victims_over_minimal   gangs disturbed, over the fewest that would do without disturbing any
                           higher priority; mean over small cases (up to 20 gangs) with a solution
    victims_over_fewest    the same over the fewest of whatever priority
    pods_over_minimal      pods that end, likewise over the fewest
    optimal_share          small cases in which every cost equals the oracle's optimum
    lost_seconds_ratio     device-seconds lost on larger clusters, over the rule "most recent first"
    victims_ratio          gangs disturbed there, over each other rule's
    below_entitlement      queues that lose members and are below what they are entitled to then
    partial_gangs          gangs left with fewer members than their minimum
    cycles                 runs of gangs in turn in which a set of running gangs recurs
    worse_than_rule_cases  larger cases in which one of the rules costs less, by the solver's order
    wrong_cases            an invalid place, a solution where there is none, or none where one is
    solver_p99_ms          of an answer, all cases; elapsed time
    large_*                answers on 8,192 full nodes, see ``large``; CPU time
    solver_large_*         the same for 8,192 pods on 130,000 nodes
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final

from loadtest.benches.room import large
from loadtest.benches.room.cases import RoomCase, generate
from loadtest.benches.room.churn import churned
from loadtest.benches.room.oracle import LeastRoom, least
from loadtest.benches.room.rules import RULES, RuleChoice, may_go
from loadtest.benches.room.score import Made, answered
from muster.placement.victims.costs import CostOrder, VictimCost

Figure = float | int | str | dict[str, float]

LARGER: Final = (160, 12, 8)
"""Gangs, racks and hosts in a rack of larger cases."""

LARGER_OF: Final = 4
"""Of so many cases one is larger."""

_MORE: Final = 3  # gangs that wait beside that of a case, in a run of churn


@dataclass(frozen=True, slots=True)
class RoomSettings:
    """What is asked on the command line."""

    cases: int
    seeds: int
    large: bool

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        for name in ("cases", "seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name}: {getattr(self, name)} is not allowed: 1 or more")


@dataclass(slots=True)
class _Tally:
    counts: Counter[str] = field(default_factory=Counter)
    ratios: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: list[float] = field(default_factory=list)
    #: By rule: sums of ours and of the rule's, over the cases that both solve.
    beside: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    misses: list[str] = field(default_factory=list)

    def add(self, made: Made) -> None:
        """Count what is wrong with an answer, and how long it took."""
        self.seconds.append(made.seconds)
        self.counts["below"] += made.below
        self.counts["partial"] += made.partial
        self.counts["wrong"] += bool(made.invalid)

    def small(self, name: str, made: Made, optimum: LeastRoom | None) -> None:
        """Compare an answer with the least that would do."""
        self.add(made)
        if optimum is None:
            self.counts["unsolved"] += 1
            return
        if optimum.cost is None or made.cost is None:
            is_wrong = (optimum.cost is None) != (made.cost is None)
            self.counts["wrong"] += is_wrong
            self.misses += [f"{name}: {made} {optimum}"] * is_wrong
            return
        self.counts["solved"] += 1
        self.counts["optimal"] += made.cost == optimum.cost
        self.counts["proven"] += made.proven
        self.counts["wrong"] += made.proven and made.cost != optimum.cost
        self.ratios["minimal"].append(len(made.gone) / optimum.gangs_at_priority)
        self.ratios["fewest"].append(len(made.gone) / optimum.gangs)
        self.ratios["pods"].append(sum(made.gone.values()) / optimum.pods)
        if made.cost != optimum.cost:
            self.misses.append(f"{name}: {made} {optimum}")

    def larger(self, name: str, case: RoomCase, made: Made) -> None:
        """Compare an answer with each rule's."""
        self.add(made)
        worse = []
        for rule, choose in RULES.items():
            other = choose(case)
            if other is None or not may_go(case, other.gone):
                continue  # it finds nobody, or takes a queue below what it is entitled to
            cost = cost_of(case, other)
            if made.cost is None or cost < made.cost:
                worse.append(rule)
            if made.cost is not None:
                self._beside(rule, case, made, other)
        self.counts["worse"] += bool(worse)
        self.counts["larger"] += 1
        self.misses += [f"{name}: {rule} costs less" for rule in worse]

    def _beside(self, rule: str, case: RoomCase, made: Made, other: RuleChoice) -> None:
        sums = self.beside[rule]
        lost = {job.name: job for job in case.jobs}
        sums["lost"] += sum(lost[name].lost(members) for name, members in made.gone.items())
        sums["gangs"] += len(made.gone)
        sums["rule lost"] += other.lost
        sums["rule gangs"] += len(other.gone)


def run(settings: RoomSettings) -> tuple[dict[str, Figure], list[str]]:
    """Return the figures of all cases of all seeds, and what was not optimal."""
    tally = _Tally()
    for seed in range(settings.seeds):
        for number in range(settings.cases):
            _one(tally, seed * settings.cases + number)
    figures = _figures(tally)
    if settings.large:
        figures |= {f"large_{k}": v for k, v in large.run(large.LargeSettings()).items()}
        figures |= _largest(large.run(large.LARGEST))
    return figures, tally.misses


def _largest(found: dict[str, float]) -> dict[str, Figure]:
    return {
        "solver_large_ms": found["solver_median_ms"],
        "solver_large_p99_ms": found["solver_p99_ms"],
        "solver_large_longest_slice_ms": found["max_slice_ms"],
        "solver_large_victims": found["victims"],
        "solver_large_made": found["made"],
    }


def _one(tally: _Tally, number: int) -> None:
    name = f"case {number}"
    if number % LARGER_OF == LARGER_OF - 1:
        case = generate(number, *LARGER)
        tally.larger(name, case, answered(case))
        return
    case = generate(number)
    tally.small(name, answered(case), least(case))
    more = tuple(generate(number * 1_000 + at + 1).asked for at in range(_MORE))
    found = churned(case, more)
    tally.counts["evictions"] += found.evictions
    tally.counts["cycles"] += found.cycles
    tally.counts["partial"] += found.partial
    tally.counts["unsettled"] += not found.is_settled


def _figures(tally: _Tally) -> dict[str, Figure]:
    counts, beside = tally.counts, tally.beside
    seconds = sorted(tally.seconds)
    recent = beside["most_recent_first"]
    return {
        "solved_cases": counts["solved"],
        "larger_cases": counts["larger"],
        "victims_over_minimal": _mean(tally.ratios["minimal"]),
        "victims_over_fewest": _mean(tally.ratios["fewest"]),
        "pods_over_minimal": _mean(tally.ratios["pods"]),
        "optimal_share": _ratio(counts["optimal"], counts["solved"]),
        "proven_share": _ratio(counts["proven"], counts["solved"]),
        "lost_seconds_ratio": _ratio(recent["lost"], recent["rule lost"]),
        "victims_ratio": {
            rule: _ratio(sums["gangs"], sums["rule gangs"]) for rule, sums in beside.items()
        },
        "lost_ratio": {
            rule: _ratio(sums["lost"], sums["rule lost"]) for rule, sums in beside.items()
        },
        "below_entitlement": counts["below"],
        "partial_gangs": counts["partial"],
        "evictions": counts["evictions"],
        "cycles": counts["cycles"],
        "unsettled_runs": counts["unsettled"],
        "worse_than_rule_cases": counts["worse"],
        "wrong_cases": counts["wrong"],
        "unsolved_cases": counts["unsolved"],
        "solver_p99_ms": round(seconds[min(len(seconds) - 1, len(seconds) * 99 // 100)] * 1e3, 2),
    }


def cost_of(case: RoomCase, choice: RuleChoice) -> tuple[int, ...]:
    """Return what a rule's choice costs by the solver's order."""
    hit = [job for job in case.jobs if choice.gone.get(job.name)]
    ended = sum(choice.gone[job.name] == len(job.hosts) for job in hit)
    most = max((job.priority for job in hit), default=VictimCost().priority)
    return CostOrder().key(VictimCost(most, choice.lost, ended, sum(choice.gone.values())))


def _mean(ratios: list[float]) -> float:
    return round(sum(ratios) / max(len(ratios), 1), 4)


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
