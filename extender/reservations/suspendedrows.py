"""The rows of one job that Muster suspended, or has just resumed."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Final

from extender.reservations.expectedrows import AwaitedMembers
from extender.reservations.priorityclasses import PriorityClasses
from muster.cluster.events import PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE
from muster.kube.resources import Resource
from muster.kube.translation.translate import Translator
from muster.kube.writing.events import Regarding
from muster.workloads.madegangs import template_pod
from muster.workloads.suspendablekinds import KINDS
from muster.workloads.suspendedjobs import SuspendedJob

_GATES: Final = frozenset({PLAN_GATE})
_NONCE_BYTES: Final = 12
_UID_BYTES: Final = 16


class Step(Enum):
    """How far a job is."""

    #: its rows wait to be planned
    WAITING = auto()
    #: planned; the PATCH is not answered yet
    RESUMING = auto()
    #: its pods come
    RESUMED = auto()


@dataclass(slots=True, eq=False)
class SuspendedRows(AwaitedMembers):
    """The rows of one job."""

    job: SuspendedJob
    resource: Resource[Any]
    #: called when one of the rows has room
    wake: Callable[[], None]
    step: Step = Step.WAITING
    #: number and role of each row's member
    rows: dict[PodUid, tuple[int, str]] = field(default_factory=dict)
    #: whether all rows are in the state
    is_whole: bool = False
    #: whether rows were given room since the last look
    has_news: bool = False
    #: when a resumed job is given up, or the PATCH is tried again (seconds of the engine's clock)
    until: float = 0.0
    #: numbers of members that are about to be in the state
    coming: list[int] = field(default_factory=list)
    #: what it asks for with the pods that it is resumed with, ``None`` while it waits
    resumed_spec: GangSpec | None = None
    #: why it waits, as the last Event says
    said: str = ""

    @property
    def gang(self) -> GangKey:
        """The gang of its pods."""
        return self.job.spec.key

    @property
    def asks_itself(self) -> GangSpec | None:
        """What a job asks for until the object is there in whose gang its pods come."""
        return (self.resumed_spec or self.job.spec) if self.job.is_renamed else None

    @property
    def may_have_pods(self) -> bool:
        """Whether it is resumed, as far as is known, or the PATCH is on its way."""
        return self.step is Step.RESUMED or (self.step is Step.RESUMING and self.until > 0.0)

    def got_room(self, _uid: PodUid) -> None:
        """Have the job looked at."""
        self.has_news = True
        self.wake()

    def about(self) -> Regarding:
        """Return the reference to the job."""
        at = self.resource
        kind = KINDS[at.group, at.plural].kind
        return Regarding(at.api_version, kind, self.job.namespace, self.job.name, self.job.uid)

    def held(self, state: ClusterState) -> list[PodUid]:
        """Return the rows that have room."""
        return [uid for uid in self.rows if state.hold(uid) is not None]

    def has_room(self, state: ClusterState) -> bool:
        """Return whether as many rows have room as the job takes at least."""
        return len(self.held(state)) >= max(self.job.spec.min_count, 1)

    def is_recovering(self, state: ClusterState) -> bool:
        """Return whether it was resumed before a restart, and not all members have places."""
        if self.job.resumed_at is None:
            return False
        view = state.gang(self.gang)
        return view is not None and len(view.waiting) > 0

    def row_of(self, rank: int) -> PodUid | None:
        """Return the row of a member, of any where none has its number; ``None``: there is none."""
        same = (uid for uid, (number, _) in self.rows.items() if number == rank)
        return next(same, None) or next(iter(self.rows), None)

    @property
    def count(self) -> int | None:
        """How many rows there are of the pods whose number may be lowered; ``None``: of none."""
        shrinkage = self.job.shrinkage
        if shrinkage is None:
            return None
        return sum(role == shrinkage.role for _, role in self.rows.values())

    def is_all(self, count: int | None) -> bool:
        """Return whether no pod is left out where there are ``count``."""
        return self.job.shrinkage is None or count == self.job.shrinkage.asked

    def resumed_text(self, count: int | None) -> str:
        """Return what to say of a job that is resumed."""
        if self.job.shrinkage is None or self.is_all(count):
            return f"all of its {self.job.size} pods have room"
        asked, least = self.job.shrinkage.asked, self.job.shrinkage.least
        return f"{count} of the {asked} pods that it asks for have room; it takes {least} or more"


def members(
    job: SuspendedJob, translator: Translator, priorities: PriorityClasses
) -> Iterator[PodUpserted]:
    """Yield a row for each pod of a job.

    Raises ``msgspec.ValidationError`` for a template that cannot be read.
    """
    nonce, count = secrets.token_bytes(_NONCE_BYTES), 0
    for kind, numbers in job.pods:
        pod = template_pod(kind.template, job.namespace, job.name)
        like = translator.pod_event(pod, gang=job.spec.key, role=kind.role, managed=True)
        like = replace(like, gates=_GATES, owned=True, priority=priorities.of(pod.spec))
        for number in numbers:
            uid = PodUid(nonce + count.to_bytes(_UID_BYTES - _NONCE_BYTES))
            count += 1
            yield replace(like, uid=uid, rank=number)
