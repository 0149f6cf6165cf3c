"""`muster bench topology`: plans on random topologies beside the optimum and other rules.

Every case is put to the planner, to the exact oracle and to the restated rules of others;
see ``loadtest.benches.topology``. Half of the cases are gangs of equal pods, half of several kinds.

::

    optimal_share_homogeneous     plans with as few domains at every level, and as few ring
    optimal_share_heterogeneous   crossings, as any plan has; of the cases that have one
    completeness                  gangs of equal pods planned, of those that fit at all
    worse_than_rule_cases         cases in which one of the rules uses fewer domains, or
                                  finds a place where the planner finds none
    invalid_cases                 plans that break a rule, or are called proven and are not best
    unsolved_cases                left out: the oracle did not prove its answer in time
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadtest.benches.topology.cases import Case, generate
from loadtest.benches.topology.oracle import Optimum, solve
from loadtest.benches.topology.rules import RULES, keeps_required, used
from loadtest.benches.topology.score import Answer, answer

Figure = float | int | str


@dataclass(slots=True)
class Tally:
    """Cases counted by outcome."""

    counts: Counter[str] = field(default_factory=Counter)
    #: Those that are not optimal, by name.
    misses: list[str] = field(default_factory=list)

    def add(self, name: str, case: Case) -> None:
        """Count one case."""
        optimum = solve(case)
        if optimum is None:
            self.counts["unsolved"] += 1
            return
        given = answer(case)
        self.counts["invalid"] += bool(given.errors)
        self._rules(name, case, given)
        if optimum.used is None:
            self.counts["invalid"] += given.used is not None
            return
        self.counts["fitting"] += 1
        self.counts["found"] += given.used is not None
        self.counts["invalid"] += given.proven and given.used != optimum.used
        good = reaches(given, optimum)
        self.counts["optimal"] += good
        self.counts["proven"] += given.proven
        if not good:
            self.misses.append(f"{name}: {given.used} {given.crossings} {optimum}")

    def _rules(self, name: str, case: Case, given: Answer) -> None:
        if case.slices:
            return
        for rule, place in RULES.items():
            found = place(case)
            if found is None or not keeps_required(case, found):
                continue
            if given.used is None or used(case, found) < given.used:
                self.counts["worse_than_rule"] += 1
                self.misses.append(f"{name}: worse than {rule}")
                return

    def share(self, part: str) -> float:
        """Return a part of the cases that have a fit."""
        return round(self.counts[part] / max(self.counts["fitting"], 1), 4)


def reaches(given: Answer, optimum: Optimum) -> bool:
    """Return whether a plan is as good as the best; crossings where those are known."""
    if given.used != optimum.used:
        return False
    return optimum.crossings is None or given.crossings == optimum.crossings


def run(cases: int, only: Sequence[str] = ()) -> tuple[dict[str, Figure], list[str]]:
    """Return the figures of ``cases`` random cases, and what was not optimal."""
    equal, mixed = Tally(), Tally()
    for number in range(cases):
        tally, several = (mixed, True) if number % 2 else (equal, False)
        name = f"case {number} {'mixed' if several else 'equal'}"
        if not only or str(number) in only:
            tally.add(name, generate(number, mixed=several))
    figures: dict[str, Figure] = {
        "cases": cases,
        "optimal_share_homogeneous": equal.share("optimal"),
        "optimal_share_heterogeneous": mixed.share("optimal"),
        "completeness": equal.share("found"),
        "completeness_heterogeneous": mixed.share("found"),
        "proven_share_homogeneous": equal.share("proven"),
        "proven_share_heterogeneous": mixed.share("proven"),
    }
    for key in ("worse_than_rule", "invalid", "unsolved"):
        figures[f"{key}_cases"] = equal.counts[key] + mixed.counts[key]
    return figures, [*equal.misses, *mixed.misses]
