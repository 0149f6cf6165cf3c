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
A gang is *admitted* as soon as it has enough members.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import GangKey

PODS_PER_JOB: Final = 1 << 14  # see ``GangSpec.rank_runs``


class GangPhase(StrEnum):
    """See the drawing in the module's docstring; in the order of a gang's life."""

    PENDING = "Pending"
    ADMITTED = "Admitted"
    PLANNED = "Planned"
    RELEASED = "Released"
    BOUND = "Bound"
    FINISHED = "Finished"


class Preemptibility(StrEnum):
    """What a gang says of giving way to others, in KAI's words."""

    UNSAID = ""
    #: Whatever its priority.
    PREEMPTIBLE = "preemptible"
    #: Members above its minimum alone.
    SEMI = "semi-preemptible"
    #: Nobody.
    NONE = "non-preemptible"

    @property
    def is_firm(self) -> bool | None:
        """Whether the minimum never gives way, ``None``: nothing is said.

        It comes before the priority (KAI, pkg/common/podgroup, ``CalculatePreemptibility``).
        """
        return None if self is Preemptibility.UNSAID else self is not Preemptibility.PREEMPTIBLE


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """A role of a gang (launcher, worker …) with its own minimum."""

    #: Its name.
    name: str
    #: Members of the role that must be placed together with the rest of the gang.
    min_count: int


@dataclass(frozen=True, slots=True)
class GangSpec:
    """What a user asked for a gang, whatever dialect it was written in."""

    #: ``dialect/namespace/name``.
    key: GangKey
    #: Its namespace.
    namespace: str
    #: Its name there.
    name: str
    #: The dialect that it was written in.
    dialect: str
    #: Members that must be placed together.
    min_count: int
    #: Members expected in all, ``None``: unknown.
    size: int | None = None
    #: Elastic upper bound, ``None`` for none.
    max_count: int | None = None
    #: Its roles, where they have minima of their own.
    roles: tuple[RoleSpec, ...] = ()
    #: Node label key: all members must share one domain of this level.
    required_level: str | None = None
    #: Node label key: members should share as few domains of this level as possible.
    preferred_level: str | None = None
    #: Members in a slice, which must share one domain of ``slice_level``.
    slice_size: int | None = None
    #: Node label key of the level of slices.
    slice_level: str | None = None
    #: Slices of those slices: (level, size in members), widest first.
    wider_slices: tuple[tuple[str, int], ...] = ()
    #: Only members of these roles are in slices, counted among themselves; empty: all are.
    slice_roles: tuple[str, ...] = ()
    #: Seconds since submission for which the preferred level is required, ``None``: never.
    relax_after: float | None = None
    #: Name of the queue, "" for none.
    queue: str = ""
    #: Seconds since the epoch.
    submitted_at: float = 0.0
    #: Contradictions found while reading; such a gang is rejected with them.
    problems: tuple[str, ...] = ()
    #: Whether the specification was read from the members: no object reports its end, so it is
    #: forgotten with the last member.
    lives_with_pods: bool = False
    #: Keys of all gangs that are placed together or not at all, this one included.
    #: ``muster.workloads.gangbook`` makes one gang of them, with one role each, before the model
    #: sees any.
    unit: tuple[GangKey, ...] = ()
    #: Whether the described ``min_count`` gets lower as members succeed, so that succeeded members
    #: must not be counted again.
    min_is_remaining: bool = False
    #: Once it ran, members that come later wait for no others, even when the first have all gone.
    once: bool = False
    #: What describes the gang knows that it ran; otherwise its members show it.
    has_run: bool = False
    #: (number of jobs, pods of each). With runs, the number of a member is job times
    #: ``PODS_PER_JOB`` plus index; it only orders the members, and ``ranks`` derives the ranks.
    #: Without runs, the number of a member is its rank.
    rank_runs: tuple[tuple[int, int], ...] = ()
    #: (role, members of one of its parts), where members count from 0 in each role; in the order of
    #: ``rank_runs``, one run each. A member gets a number of its role's place and its own index
    #: (``number``). A part smaller than a slice gets a slice for itself; 0: the role has no parts.
    numbered_roles: tuple[tuple[str, int], ...] = ()
    #: Hot spares: room held for members it may lose, in each slice if there are slices.
    standby: int = 0
    #: At this level a hot spare shares a domain with a member; ``None``: at the required one only.
    standby_level: str | None = None
    #: Whether the whole gang is evicted if it lost members and has no room for their successors,
    #: even if it has run.
    restarts: bool = False
    #: Whether its controller counts an evicted member as a failure: members above its minimum end
    #: only with all of it.
    counts_evictions: bool = False
    #: Seconds for which it runs at most once it has its minimum, ``None``: its user does not say.
    max_run_time: float | None = None
    #: Whether it ends whole where it gives way, and never a member above its minimum by itself.
    ends_whole: bool = False
    #: Whether it makes others give way.
    preempts: bool = True
    #: What it says of giving way; only some queues obey it.
    preemptibility: Preemptibility = Preemptibility.UNSAID
    #: Seconds for which it runs before it gives way, as it says itself (Volcano's cooldown time).
    cooldown: float = 0.0
    #: Whether its pods serve requests, and do no work that has an end (pods of a Deployment, a
    #: StatefulSet, a LeaderWorkerSet).
    serves: bool = False
    #: (field, where the user wrote it), so that messages name what the user wrote
    #: (``muster.cluster.specs.contradictions``).
    written: tuple[tuple[str, str], ...] = ()

    def where(self, name: str) -> str:
        """Return where the user wrote a field; the name of the field where that is not known."""
        return next((place for of, place in self.written if of == name), name)


def hot_spares_wanted(spec: GangSpec) -> int:
    """Return how many hot spares a gang wants in total."""
    if not spec.slice_size:
        return spec.standby
    return spec.standby * (max(spec.size or 0, spec.min_count) // spec.slice_size)


def number(spec: GangSpec, role: str, index: int) -> int:
    """Return the number of the ``index``-th member of a role, -1: there is no such role.

    ::

        parts of 2 and of 3 in slices of 3     role a  0 1   2 3      role b  0 1 2
                                               number  0 1 · 3 4 ·            0 1 2  + 16384

    Members beyond those that a role is known to have are counted with the last ones, and those
    without an index (-1) with the first: then numbers come twice.
    """
    names = [name for name, _ in spec.numbered_roles]
    if role not in names:
        return -1
    place = names.index(role)
    size, most = spec.numbered_roles[place][1], spec.rank_runs[place][1]
    width = (spec.slice_size or size) if size else most
    part = min(max(index, 0) // (size or most or 1), max(most // max(width, 1) - 1, 0))
    within = min(max(index, 0) - part * size, max(width - 1, 0))
    return place * PODS_PER_JOB + min(part * width + within, PODS_PER_JOB - 1)


def ranks(spec: GangSpec, numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the position of each member in rank order, from 0, counting members to come.

    ``numbers``: int32, the members' numbers. The rank is -1 (unknown) for a number below 0 and for
    one of a job that the gang does not have.
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
