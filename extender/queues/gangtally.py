"""The gangs of each queue, counted as they change.

::

    GangChanged, HoldExpired ──► due ──► state.gang ──► by whoever names a queue ──► by queue

A gang is looked at again only when it changed. It is kept by how it names its queue, so a queue
that comes, goes or gets another name moves no gang.
"""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Engine
from muster.cluster.effects import Effect, GangChanged, HoldExpired
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.specs.gangspec import GangPhase
from muster.cluster.tables.gangview import GangView
from muster.queueing.admission.applicant import Rank, rank_of
from muster.queueing.admission.memberrequests import requests_of
from muster.workloads.queues.sight import GangCounts

_GANGS_PER_STEP: Final = 8
_PLACING: Final = (GangPhase.PLANNED, GangPhase.RELEASED)


@dataclass(slots=True)
class NamedGangs:
    """The gangs that name a queue alike."""

    #: complete ones that wait, with their places among them
    waiting: dict[GangKey, Rank] = field(default_factory=dict)
    #: by gang that waits, what its waiting members ask for
    asked: dict[GangKey, Mapping[str, int]] = field(default_factory=dict)
    placing: set[GangKey] = field(default_factory=set)
    running: set[GangKey] = field(default_factory=set)

    def drop(self, key: GangKey) -> None:
        """Forget a gang."""
        self.waiting.pop(key, None)
        self.asked.pop(key, None)
        self.placing.discard(key)
        self.running.discard(key)

    def put(self, view: GangView) -> None:
        """Count a gang where it belongs now; one that lacks members, or has finished, nowhere."""
        if view.phase is GangPhase.BOUND:
            self.running.add(view.key)
        elif view.phase in _PLACING and not len(view.waiting):
            self.placing.add(view.key)
        elif view.phase in (*_PLACING, GangPhase.ADMITTED):
            self.waiting[view.key] = rank_of(view)


class GangTally:
    """How many gangs of each queue wait, are being placed, or run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._due: set[GangKey] | None = None  # None until somebody counts: then all gangs are
        self._adds_up = False
        self._users: dict[GangKey, QueueUser] = {}
        self._named: defaultdict[QueueUser, NamedGangs] = defaultdict(NamedGangs)
        self._listens = False

    def _notice(self, effect: Effect) -> None:
        if self._due is None:
            return
        if isinstance(effect, GangChanged):
            self._due.add(effect.key)
        elif isinstance(effect, HoldExpired):
            self._due.add(effect.gang)

    def add_up(self) -> None:
        """From now on note what waiting gangs ask for, too."""
        if not self._adds_up:
            self._adds_up, self._due = True, None

    def rest(self) -> None:
        """Forget everything, until somebody counts again."""
        self._due = None
        self._users.clear()
        self._named.clear()

    def count(self) -> Generator[None, None, None]:
        """Look at every gang that changed, in steps."""
        if not self._listens:  # where there are no queues nobody is called for each pod
            self._engine.listen(self._notice, GangChanged, HoldExpired)
            self._listens = True
        if self._due is None:
            self._due = set(self._engine.state.gangs())
        due, self._due = self._due, set()
        for number, key in enumerate(due):
            self._look(key)
            if number % _GANGS_PER_STEP == 0:
                yield

    def _look(self, key: GangKey) -> None:
        user = self._users.pop(key, None)
        if user is not None:
            self._named[user].drop(key)
            if self._named[user] == NamedGangs():
                del self._named[user]
        view = self._engine.state.gang(key)
        if view is not None and view.phase is not GangPhase.FINISHED:
            user = self._users[key] = self._engine.state.queue_user(view)
            self._named[user].put(view)
            if self._adds_up and key in self._named[user].waiting:
                asked = requests_of(view, self._engine.state.snapshot())
                self._named[user].asked[key] = asked.of_first(len(view.waiting))

    def by_queue(self) -> dict[QueueName, list[QueueUser]]:
        """Return those who name each queue and have gangs."""
        found: defaultdict[QueueName, list[QueueUser]] = defaultdict(list)
        for user in self._named:
            queue = self._engine.state.charges.queue_of(user)
            if queue is not None:
                found[queue].append(user)
        return found

    def counts(self, users: list[QueueUser]) -> GangCounts:
        """Return the gangs of several who name a queue."""
        found = [self._named[user] for user in users if user in self._named]
        ranks = [rank for named in found for rank in named.waiting.values()]
        return GangCounts(
            waiting=len(ranks),
            placing=sum(len(named.placing) for named in found),
            running=sum(len(named.running) for named in found),
            first=min(ranks)[-1] if ranks else "",
            asked=_sum(one for named in found for one in named.asked.values()),
        )


def _sum(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for one in amounts:
        found.update(one)
    return dict(found)
