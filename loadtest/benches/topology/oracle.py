"""The exact answer, from a solver that knows nothing of Muster: OR-tools CP-SAT.

One integer program per case, with the objective of docs/design/topology.md::

    minimise, one after the other:
      domains used     of the preferred level, then of every level from the widest to hosts
      ring crossings   given those: neighbours in rank order in different domains, the last
                       rank and the first being neighbours too, from the widest level down
    subject to         every host's room · one domain of the required level · every slice
                       inside one domain of the slice level

Ranks go through the kinds in order, so at best every kind visits each of its domains once,
or, for one crossing more, ends in the one that it began in::

    kind A  ─► d1 d2 d3 ─┐        crossings = (domains of A - 1) + (domains of B - 1)
    kind B  ◄─ d1 d3 ◄───┘          + 1 for every change of kind that is also one of domain

Crossings of gangs in slices of several kinds are not solved: ranks then change kind within
slices, and there is no such formula.
"""

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final

from loadtest.benches.topology.cases import Case, Layer, layers

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

SECONDS: Final = 10.0  # of the solver for one question; what is not proven then is left out


class OracleMissingError(Exception):
    """OR-tools is not installed."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best plan that there is for a case."""

    #: Domains used, in ``Case.order``; ``None``: nothing fits.
    used: tuple[int, ...] | None
    #: Ring crossings per level, widest first, ``None`` where not solved.
    crossings: tuple[int, ...] | None


def solve(case: Case) -> Optimum | None:
    """Return the optimum of a case, ``None`` when it was not proven in time."""
    model = _Model(case, _load())
    used = model.minimise(model.used_terms())
    if used is None:
        return None
    if not used:
        return Optimum(None, None)
    levels = _by_level(case, used)
    if len(case.kinds) == 1 or all(count == 1 for count in levels):
        return Optimum(used, tuple(0 if count == 1 else count for count in levels))
    if case.slices:
        return Optimum(used, None)
    model.fix(used)
    crossings = model.minimise(model.crossing_terms(levels))
    return None if crossings is None else Optimum(used, _with_zeros(levels, crossings))


def _load() -> ModuleType:
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError as error:
        raise OracleMissingError(
            "the oracle needs ortools, which `make install` brings with the test group"
        ) from error


def _by_level(case: Case, used: Sequence[int]) -> tuple[int, ...]:
    return tuple(used[-len(case.levels) :])


def _with_zeros(levels: Sequence[int], crossings: Sequence[int]) -> tuple[int, ...]:
    left = iter(crossings)
    return tuple(0 if count == 1 else next(left) for count in levels)


class _Model:
    """Pods per host and kind, domains in use, slices per domain."""

    def __init__(self, case: Case, solvers: ModuleType) -> None:
        self._case, self._cp = case, solvers
        self._model: cp_model.CpModel = solvers.CpModel()
        self._domains = case.domains()
        self._hosts = [i for i, host in enumerate(case.hosts) if case.eligible(host)]
        self._pods = [[self._pod_var(h, k) for k in range(len(case.kinds))] for h in self._hosts]
        self._open = [self._open_vars(level) for level in range(len(case.levels))]
        self._objectives: list[cp_model.IntVar] = []
        self._rooms()
        self._required()
        self._slices()

    def _pod_var(self, host: int, kind: int) -> "cp_model.IntVar":
        asked = self._case.kinds[kind]
        room = min(self._case.hosts[host].room(asked), asked.count)
        return self._model.new_int_var(0, room, f"pods {host} {kind}")

    def _open_vars(self, level: int) -> "dict[str, cp_model.IntVar]":
        names = dict.fromkeys(self._domains[level][h] for h in self._hosts)
        return {name: self._model.new_bool_var(f"open {name}") for name in names}

    def _rooms(self) -> None:
        case, model = self._case, self._model
        for pods, h in zip(self._pods, self._hosts, strict=True):
            host = case.hosts[h]
            gpus = sum(x * kind.gpus for x, kind in zip(pods, case.kinds, strict=True))
            cpu = sum(x * kind.millicpu for x, kind in zip(pods, case.kinds, strict=True))
            model.add(gpus <= host.free_gpus)
            model.add(cpu <= host.free_millicpu)
            here = self._open[-1][self._domains[-1][h]]
            model.add(sum(pods) <= case.members * here)
            for level in range(len(case.levels) - 1):
                model.add_implication(here, self._open[level][self._domains[level][h]])
        for k, kind in enumerate(case.kinds):
            model.add(sum(pods[k] for pods in self._pods) == kind.count)

    def _required(self) -> None:
        if self._case.required is not None:
            self._model.add(sum(self._open[self._case.required].values()) == 1)

    def _slices(self) -> None:
        """Units in a domain of a layer are those that the slices lying in it consist of."""
        units = [(h, pods) for h, pods in zip(self._hosts, self._pods, strict=True)]
        for layer in layers(self._case):
            inside: dict[str, list[tuple[int, list[cp_model.IntVar]]]] = {}
            for host, amounts in units:
                inside.setdefault(self._domains[layer.level][host], []).append((host, amounts))
            units = [
                (parts[0][0], self._slices_of(layer, [amounts for _, amounts in parts]))
                for parts in inside.values()
            ]
            for i, (_, count) in enumerate(layer.makeups):
                self._model.add(sum(chosen[i] for _, chosen in units) == count)

    def _slices_of(
        self, layer: Layer, parts: "list[list[cp_model.IntVar]]"
    ) -> "list[cp_model.IntVar]":
        """Return how many slices of each make-up the units of one domain are."""
        chosen = [self._model.new_int_var(0, count, "slices") for _, count in layer.makeups]
        for unit in range(len(layer.makeups[0][0])):
            total = sum(amounts[unit] for amounts in parts)
            vectors = zip(chosen, layer.makeups, strict=True)
            self._model.add(total == sum(x * vector[unit] for x, (vector, _) in vectors))
        return chosen

    def _inside(self, level: int) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for m, h in enumerate(self._hosts):
            found.setdefault(self._domains[level][h], []).append(m)
        return found

    # --- objectives ---------------------------------------------------------------------

    def used_terms(self) -> "list[cp_model.IntVar]":
        """Return one count of used domains for each entry of ``Case.order``."""
        counts = [self._total(list(self._open[level].values())) for level in range(len(self._open))]
        self._objectives = [counts[level] for level in self._case.order()]
        return self._objectives

    def fix(self, values: Sequence[int]) -> None:
        """Hold the objectives of before to what they reached."""
        for variable, value in zip(self._objectives, values, strict=True):
            self._model.add(variable == value)

    def crossing_terms(self, levels: Sequence[int]) -> "list[cp_model.IntVar]":
        """Return the ring crossings of every level with several domains, widest first."""
        terms = []
        ends: _Ends | None = None
        for level, count in enumerate(levels):
            if count > 1:
                ends = self._ends(level, ends)
                terms.append(self._crossings(ends))
        return terms

    def _total(self, parts: "list[cp_model.IntVar]") -> "cp_model.IntVar":
        total = self._model.new_int_var(0, max(len(parts), 1), "total")
        self._model.add(total == sum(parts))
        return total

    def _ends(self, level: int, above: "_Ends | None") -> "_Ends":
        """Return where each kind's run through the domains of a level begins and ends."""
        model, inside = self._model, self._inside(level)
        ends = _Ends(level, [], [], [], [])
        for k, kind in enumerate(self._case.kinds):
            held = {d: model.new_bool_var(f"held {level} {k} {d}") for d in inside}
            for d, members in inside.items():
                here = sum(self._pods[m][k] for m in members)
                model.add(here >= held[d])
                model.add(here <= kind.count * held[d])
            first = {d: model.new_bool_var(f"first {level} {k} {d}") for d in inside}
            last = {d: model.new_bool_var(f"last {level} {k} {d}") for d in inside}
            alone = model.new_bool_var(f"alone {level} {k}")
            model.add(sum(held.values()) <= 1 + len(inside) * (1 - alone))
            for side in (first, last):
                model.add_exactly_one(side.values())
                for d in inside:
                    model.add_implication(side[d], held[d])
            back = model.new_bool_var(f"back {level} {k}")
            for d in inside:
                model.add(first[d] + last[d] <= 1 + alone + back)
            ends.back.append(back)
            ends.held.append(held)
            ends.first.append(first)
            ends.last.append(last)
        if above is not None:
            self._nest(ends, above)
        return ends

    def _nest(self, ends: "_Ends", above: "_Ends") -> None:
        for d, members in self._inside(ends.level).items():
            parent = self._domains[above.level][self._hosts[members[0]]]
            for k in range(len(self._case.kinds)):
                self._model.add_implication(ends.first[k][d], above.first[k][parent])
                self._model.add_implication(ends.last[k][d], above.last[k][parent])

    def _crossings(self, ends: "_Ends") -> "cp_model.IntVar":
        model, kinds = self._model, len(self._case.kinds)
        parts = [sum(held.values()) - 1 for held in ends.held] + ends.back
        for k in range(kinds):
            following = ends.first[(k + 1) % kinds]
            met = []
            for d, end in ends.last[k].items():
                both = model.new_bool_var(f"met {ends.level} {k} {d}")
                model.add_implication(both, end)
                model.add_implication(both, following[d])
                met.append(both)
            parts.append(1 - sum(met))
        total = model.new_int_var(0, kinds * (len(ends.held[0]) + 2), "crossings")
        model.add(total == sum(parts))
        return total

    def minimise(self, terms: "list[cp_model.IntVar]") -> tuple[int, ...] | None:
        """Return the lexicographic minimum, ``()``: nothing fits, ``None``: not proven."""
        solver: cp_model.CpSolver = self._cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = SECONDS
        solver.parameters.random_seed = 1
        self._model.minimize(sum(term * weight for term, weight in _weights(terms)))
        status = solver.solve(self._model)
        if status == self._cp.INFEASIBLE:
            return ()
        if status != self._cp.OPTIMAL:
            return None
        return tuple(int(solver.value(term)) for term in terms)


@dataclass(frozen=True, slots=True)
class _Ends:
    """Per kind and domain of one level: whether it is held, begun with, ended with."""

    level: int
    #: Per kind, whether it may end in the domain that it began in.
    back: "list[cp_model.IntVar]"
    held: "list[dict[str, cp_model.IntVar]]"
    first: "list[dict[str, cp_model.IntVar]]"
    last: "list[dict[str, cp_model.IntVar]]"


def _weights(terms: "list[cp_model.IntVar]") -> "Iterator[tuple[cp_model.IntVar, int]]":
    """Weigh each term above all that those after it can add up to."""
    weight = 1
    for term in reversed(terms):
        yield term, weight
        weight *= max(term.proto.domain) + 1
