"""What a gang is, and the phases of its life.

::

            members < min_count                 hold expired, plan refused
           ┌──────────┐                      ┌──────────────────────────────┐
           ▼          │                      ▼                              │
       ┌─────────┐ admitted ┌──────────┐ planned ┌─────────┐  PATCHes  ┌──────────┐
  ───► │ PENDING ├─────────►│ ADMITTED ├────────►│ PLANNED ├──────────►│ RELEASED │
       └─────────┘          └──────────┘         └─────────┘           └────┬─────┘
                                                                            │ min_count bound
                              ┌──────────┐   all members finished  ┌────────▼─┐
                              │ FINISHED │◄────────────────────────┤  BOUND   │
                              └──────────┘                         └──────────┘

The phase is *derived* from the members and the ledger, never stored beside them, so it
cannot contradict them; a restart that lists the same objects arrives at the same phase.
*Admitted* is always granted once enough members exist; queues will decide it later.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import GangKey

PODS_PER_JOB: Final = 1 << 14  # in numbers of members that come in several jobs, see `ranks`


class GangPhase(StrEnum):
    """See the drawing in the module's docstring; in the order of a gang's life."""

    PENDING = "Pending"
    ADMITTED = "Admitted"
    PLANNED = "Planned"
    RELEASED = "Released"
    BOUND = "Bound"
    FINISHED = "Finished"


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """A role of a gang (launcher, worker …) with its own minimum."""

    name: str
    min_count: int


@dataclass(frozen=True, slots=True)
class GangSpec:
    """What a user asked for a gang, whatever dialect it was written in.

    ``size``: members expected in all (``None``: unknown). ``min_count``: members that
    must be placed together. ``max_count``: elastic upper bound, ``None`` for none.
    ``required_level`` and ``preferred_level`` are node label keys. ``slice_size``
    members at a time share one domain of ``slice_level``. ``wider_slices``: slices of those
    slices, (level, size in members), widest first. ``slice_roles``: only members of these roles
    are in slices, counted among themselves; empty: all are. ``relax_after``: seconds since
    submission for which the preferred level is required, ``None``: never. ``created`` and
    ``submitted_at`` are seconds since the epoch. ``problems`` are contradictions found
    while reading; such a gang is rejected with them. ``lives_with_pods``: read from the
    members themselves, so nobody reports its end and it goes with its last member.
    ``unit``: keys of all gangs that are placed together or not at all, this one included;
    ``muster.workloads.gangbook`` makes one gang of them, with one role each, before the model sees
    any. ``min_is_remaining``: whoever describes the gang lowers ``min_count`` as members succeed,
    so those that did are not counted a second time. ``rank_runs``: (jobs, pods of each), where
    members are numbered job times ``PODS_PER_JOB`` plus index; such a number only orders, the rank
    follows from it (``ranks``). Without runs a member's number is its rank. ``standby``: hot
    spares, seats that are kept for lost members, in each slice if there are slices.
    ``standby_level``: the seat shares a domain of it with a member, ``None``: with no more than
    what is required. ``restarts``: a gang that lost members and finds no room for their successors
    is taken down whole, though it may have run. ``written``: (field, where the user wrote it): what
    is wrong with a gang is told in the words of its user (``muster.cluster.specs.contradictions``).
    """

    key: GangKey
    namespace: str
    name: str
    dialect: str
    min_count: int
    size: int | None = None
    max_count: int | None = None
    roles: tuple[RoleSpec, ...] = ()
    required_level: str | None = None
    preferred_level: str | None = None
    slice_size: int | None = None
    slice_level: str | None = None
    wider_slices: tuple[tuple[str, int], ...] = ()
    slice_roles: tuple[str, ...] = ()
    relax_after: float | None = None
    queue: str = ""
    submitted_at: float = 0.0
    problems: tuple[str, ...] = ()
    lives_with_pods: bool = False
    unit: tuple[GangKey, ...] = ()
    min_is_remaining: bool = False
    rank_runs: tuple[tuple[int, int], ...] = ()
    standby: int = 0
    standby_level: str | None = None
    restarts: bool = False
    written: tuple[tuple[str, str], ...] = ()

    def where(self, name: str) -> str:
        """Return where the user wrote a field, its own name where that is not known."""
        return next((place for of, place in self.written if of == name), name)


def standby_seats(spec: GangSpec) -> int:
    """Return how many hot spares a gang keeps in all."""
    if not spec.slice_size:
        return spec.standby
    return spec.standby * (max(spec.size or 0, spec.min_count) // spec.slice_size)


def ranks(spec: GangSpec, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the position of each member in rank order, from 0, counting members to come.

    ``numbers``: int32, the members' numbers; one below 0, or of a job that the gang does
    not have, is -1 in the result: unknown.
    """
    if sum(jobs for jobs, _ in spec.rank_runs) <= 1:
        return numbers.astype(np.int64)
    jobs, pods = np.array(spec.rank_runs, dtype=np.int64).T
    sizes = np.repeat(pods, jobs)
    job, index = np.divmod(numbers.astype(np.int64), PODS_PER_JOB)
    known = (job >= 0) & (job < len(sizes))
    first = np.concatenate([[0], np.cumsum(sizes)])
    result: NDArray[np.int64] = np.where(known, first[np.where(known, job, 0)] + index, -1)
    return result
