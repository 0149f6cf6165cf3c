"""The least cost and the fewest victims, from OR-tools CP-SAT, which knows nothing of Muster.

One integer program per case::

    end[j]        gang j ends            lost[j, h]   members of j on host h that end beside it
    here[d]       the domain taken       put[h]       members of the gang on host h
    subject to    one domain · every host's room · who may give way (re-stated below)
    minimise      one after the other: the highest priority disturbed, device-seconds in powers of
                  eight, gangs that end, device-seconds, pods; or victims alone

Who may give way: in its own queue a gang of a lower priority; in another one if that queue uses
more than it is entitled to and does not fall below it, and the gang's queue stays within its own.
Nobody who is protected or has run for less than the least time.
"""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final

from loadtest.benches.room.cases import GPUS, MIN_RUN_S, NOW, Job, RoomCase

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

SECONDS: Final = 10.0
_POWERS: Final = 12  # 8¹² device-seconds are 2,000 years of a device


class SolverMissingError(Exception):
    """OR-tools is not installed."""


@dataclass(frozen=True, slots=True)
class LeastRoom:
    """What would do at least. All fields are 0 or more; ``None`` fields: nothing would do."""

    #: (priority, waste, gangs that end, device-seconds, pods that end).
    cost: tuple[int, ...] | None
    #: Gangs disturbed, if nothing counted but that no higher priority is disturbed.
    gangs_at_priority: int = 0
    #: Gangs disturbed, if nothing else counted.
    gangs: int = 0
    #: Pods ended, if nothing else counted.
    pods: int = 0


def least(case: RoomCase) -> LeastRoom | None:
    """Return the least that would do, ``None`` when it was not proven in time."""
    model = _RoomModel(case, _load())
    cost = model.minimise(model.cost_terms())
    if cost is None:
        return None
    if not cost:
        return LeastRoom(None)
    found = []
    for wish in ("gangs at priority", "gangs", "pods"):
        other = _RoomModel(case, _load())
        best = other.minimise(other.fewest_terms(wish))
        if not best:
            return None
        found.append(best[-1])
    return LeastRoom(cost, *found)


def _load() -> ModuleType:
    try:
        return importlib.import_module("ortools.sat.python.cp_model")
    except ImportError as error:
        raise SolverMissingError(
            "the oracle needs ortools, which `make install` brings with the test group"
        ) from error


def may_give_way(case: RoomCase, job: Job) -> bool:
    """Return whether a gang may be asked at all, whoever else goes."""
    if job.name in case.protected or NOW - job.started < MIN_RUN_S:
        return False
    if job.queue == case.asked.queue:
        return job.priority < case.asked.priority
    return case.used(job.queue) > case.entitled[job.queue]


class _RoomModel:
    def __init__(self, case: RoomCase, solvers: ModuleType) -> None:
        self._case, self._cp = case, solvers
        self._model: cp_model.CpModel = solvers.CpModel()
        self._jobs = [job for job in case.jobs if may_give_way(case, job)]
        new_bool = self._model.new_bool_var
        self._end = {job.name: new_bool(f"end {job.name}") for job in self._jobs}
        self._part = {
            (job.name, host): self._part_var(job, host)
            for job in self._jobs
            for host in sorted(set(job.hosts))
        }
        self._surplus()
        self._room()
        self._quota()

    def _part_var(self, job: Job, host: int) -> "cp_model.IntVar":
        """Return members on a host that end while the gang goes on; the first member stays."""
        there = job.hosts.count(host) - (job.hosts[0] == host)
        most = min(there, job.surplus)
        return self._model.new_int_var(0, most, f"part {job.name} {host}")

    def _parts(self, job: Job) -> "list[cp_model.IntVar]":
        return [self._part[job.name, host] for host in sorted(set(job.hosts))]

    def _surplus(self) -> None:
        for job in self._jobs:
            spared = sum(self._parts(job)) + job.surplus * self._end[job.name]
            self._model.add(spared <= job.surplus)

    def _room(self) -> None:
        case, model, asked = self._case, self._model, self._case.asked
        domains = case.domains()
        here = [model.new_bool_var(f"here {number}") for number in range(len(domains))]
        model.add(sum(here) == 1)
        free = case.free()
        for number, hosts in enumerate(domains):
            put = [model.new_int_var(0, GPUS, f"put {number} {host}") for host in hosts]
            model.add(sum(put) >= asked.members * here[number])
            for host, members in zip(hosts, put, strict=True):
                freed = sum(
                    job.gpus * (job.hosts.count(host) * self._end[job.name] + self._part[key])
                    for job in self._jobs
                    if (key := (job.name, host)) in self._part
                )
                model.add(members * asked.gpus <= free[host] + freed)

    def _gone(self, queue: str) -> "cp_model.LinearExprT":
        total: cp_model.LinearExprT = sum(
            job.gpus * (len(job.hosts) * self._end[job.name] + sum(self._parts(job)))
            for job in self._jobs
            if job.queue == queue
        )
        return total

    def _quota(self) -> None:
        case, model = self._case, self._model
        queue, asks = case.asked.queue, case.asked.gpus * case.asked.members
        after = case.used(queue) - self._gone(queue) + asks
        model.add(after <= case.limits[queue])
        takes = model.new_bool_var("takes from others")
        for job in self._jobs:
            if job.queue != queue:
                model.add_implication(self._end[job.name], takes)
                for part in self._parts(job):
                    model.add(part == 0).only_enforce_if(takes.negated())
        model.add(after <= case.entitled[queue]).only_enforce_if(takes)
        for other in case.entitled:
            if other != queue and case.used(other) > case.entitled[other]:
                model.add(case.used(other) - self._gone(other) >= case.entitled[other])

    # --- what is minimised ------------------------------------------------------------------

    def _is_hit(self, job: Job) -> "cp_model.IntVar":
        hit: cp_model.IntVar = self._model.new_bool_var(f"hit {job.name}")
        self._model.add_implication(self._end[job.name], hit)
        for part in self._parts(job):
            self._model.add(part == 0).only_enforce_if(hit.negated())
        return hit

    def disturbed(self) -> "cp_model.LinearExprT":
        """Return how many gangs lose members."""
        return sum(self._is_hit(job) for job in self._jobs)

    def ended(self) -> "cp_model.LinearExprT":
        """Return how many pods end."""
        total: cp_model.LinearExprT = sum(
            len(job.hosts) * self._end[job.name] + sum(self._parts(job)) for job in self._jobs
        )
        return total

    def fewest_terms(self, wish: str) -> "list[cp_model.LinearExprT]":
        """Return what is minimised for the fewest victims of a kind."""
        if wish == "pods":
            return [self.ended()]
        return [self.cost_terms()[0]] * (wish != "gangs") + [self.disturbed()]

    def cost_terms(self) -> "list[cp_model.LinearExprT]":
        """Return the costs, the most important first."""
        most = self._model.new_int_var(0, 1 << 20, "priority")
        for job in self._jobs:
            self._model.add(most >= job.priority * self._is_hit(job))
        lost = sum(
            job.lost() * self._end[job.name] + job.lost(1) * sum(self._parts(job))
            for job in self._jobs
        )
        return [most, self._waste(lost), sum(self._end.values()), lost, self.ended()]

    def _waste(self, lost: "cp_model.LinearExprT") -> "cp_model.LinearExprT":
        """Return how many powers of eight, from 8⁰ on, are no more than an amount."""
        powers = [self._model.new_bool_var(f"waste {n}") for n in range(_POWERS)]
        for number, reached in enumerate(powers):
            self._model.add(lost <= 8**number - 1 + 8**_POWERS * reached)
        total: cp_model.LinearExprT = sum(powers)
        return total

    def minimise(self, terms: "Sequence[cp_model.LinearExprT]") -> tuple[int, ...] | None:
        """Minimise terms one after the other; empty: nothing would do, ``None``: not proven."""
        found: list[int] = []
        for term in terms:
            self._model.minimize(term)
            solver = self._cp.CpSolver()
            solver.parameters.max_time_in_seconds = SECONDS
            solver.parameters.num_workers = 1
            status = solver.solve(self._model)
            if status == self._cp.INFEASIBLE:
                return ()
            if status != self._cp.OPTIMAL:
                return None
            found.append(round(solver.objective_value))
            self._model.add(term == found[-1])
        return tuple(found)
