"""What controllers of other schedulers wait to read in the status of their gang objects.

A controller may hold back pods, or report a job as stuck, until *its* scheduler has moved
the status of a PodGroup. That scheduler is absent, so Muster writes what it would have
written: a pure function from the object and the gang to the wanted fields, and an effect
in the extender that sends them (``extender.watchover.groupstatuses``).

Only groups whose pods Muster takes over from that scheduler are written to
(``managed.rewrite`` names the scheduler); next to a scheduler that is really there, two
would write one field.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.workloads.groupconditions import GroupCondition

ObjectT = TypeVar("ObjectT")
Fields = Mapping[str, str | int | tuple[GroupCondition, ...]]
"""Fields of a status by their names on the wire; what is not named stays as it is."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Why a gang waits, as users are told. ``since``: seconds since the epoch.

    ``cause``: one CamelCase word of a closed set; ``message``: all of it, with numbers.
    """

    cause: str
    message: str
    since: float


@dataclass(frozen=True, slots=True)
class GangProgress:
    """How far a gang is, in members. ``placed`` are bound or have succeeded.

    A member that is being deleted counts as bound for as long as it stands on its node. ``needed``:
    members that the gang asks for, less those that finished and are gone; None while unknown.
    ``waits``: why others wait, None where that has not been told to users. ``now``: seconds
    since the epoch. ``version``: of the API that the object was read in.
    """

    present: int = 0
    bound: int = 0
    succeeded: int = 0
    failed: int = 0
    needed: int | None = None
    waits: Waits | None = None
    now: float = 0.0
    version: str = ""

    @property
    def placed(self) -> int:
        """Members that have their place, or are done with it."""
        return self.bound + self.succeeded

    def is_placed(self, minimum: int) -> bool:
        """Return whether enough members are placed; ``minimum``: what the object asks for."""
        needed = minimum if self.needed is None else min(minimum, self.needed)
        return self.placed >= max(needed, 1)

    @property
    def ended(self) -> bool:
        """Whether every member there is has finished."""
        return 0 < self.present == self.succeeded + self.failed


@dataclass(frozen=True, slots=True)
class GroupStatus(Generic[ObjectT]):
    """How the status of one kind is kept. ``scheduler``: whose place Muster takes.

    None: kube-scheduler's own, which says nothing of pods that a gate keeps from it.

    ``gang``: the key of the gang that an object stands for, which need not be its own.
    ``wanted`` returns the fields as they should be, given the object and its gang's progress.
    ``said`` returns the same fields as the object has them now.
    """

    scheduler: str | None
    gang: Callable[[ObjectT], GangKey]
    wanted: Callable[[ObjectT, GangProgress], Fields]
    said: Callable[[ObjectT], Fields]

    def change(self, found: ObjectT, progress: GangProgress) -> Fields:
        """Return the fields to be written, empty when the object already says so."""
        before = self.said(found)
        wanted = self.wanted(found, progress)
        return {name: value for name, value in wanted.items() if before.get(name) != value}


def progress(
    gang: GangView | None, *, waits: Waits | None = None, now: float = 0.0, version: str = ""
) -> GangProgress:
    """Return how far a gang is; one without members is at its beginning."""
    if gang is None:
        return GangProgress(now=now, version=version)
    standing = len(gang.bound) + len(gang.leaving)
    unplaced = (gang.waiting, gang.blocked, gang.assumed, gang.released)
    return GangProgress(
        present=sum(map(len, unplaced)) + standing + len(gang.finished),
        bound=standing,
        succeeded=len(gang.done),
        failed=len(gang.finished) - len(gang.done),
        needed=None if gang.spec is None else gang.spec.min_count,
        waits=waits,
        now=now,
        version=version,
    )
