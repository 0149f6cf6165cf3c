"""Gangs that give way, judged by the marks on their pods and by what then holds room.

::

    marked for P ─► evicted ─► gone ─► P runs                    as it should be
        │             │          └───► back, and P waits for just that room      CYCLE
        │             └─ P runs already, or is gone              for NOTHING
        ├─ P was begun anew since, with other pods ► not judged: the room was for its predecessor
        ├─ one of P's queue with a higher priority runs ► P's room is its
        ├─ its queue used no more than its part without it       BELOW
        └─ at rest: P never ran and waits                        for NOTHING
           at rest: marked and not gone                          partial

What Muster knows is older than what is so. So nobody is judged by a state that is younger than the
oldest news that may be under way: two seconds, or two hundred after faults of a network or process.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from loadtest.chaos.simulation.jobs import Job
from loadtest.chaos.simulation.teams import GPU, Team
from loadtest.chaos.verdict.records import PodRecord, Records

SOON_S: Final = 3.0  # a look, a plan that is held and not yet written, a mark that is written
LATE_S: Final = 200.0  # a watch hangs for 150 s at most, a fault for 40 s
Fits = Callable[[Job, str], bool]
"""Whether a gang would be placed now if another one, "" for none, held nothing."""


@dataclass(slots=True)
class GivingFindings:
    """What must be empty, and how often there was something to judge."""

    cycles: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)
    for_nothing: list[str] = field(default_factory=list)
    half: list[str] = field(default_factory=list)
    #: gangs that were marked
    orders: int = 0
    #: of these, those whose gang ran afterwards
    served: int = 0
    #: those whose room went to another gang of the same queue with a higher priority
    overtaken: int = 0


@dataclass(slots=True)
class Order:
    """One gang that gives way. Times are virtual seconds."""

    victim: str
    preemptor: str
    since: float
    is_whole: bool
    #: what it gives up: GPUs
    gpus: int
    #: the preemptor's pods at that time, by UID
    members: frozenset[str]
    has_begun: bool = False
    is_gone: bool = False
    #: whether its queue was looked at
    is_judged: bool = False


@dataclass(slots=True)
class Usage:
    """What queues used, each second for as long as news may be under way. GPUs."""

    records: Records
    jobs: Mapping[str, Job]
    _past: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)

    def now(self) -> dict[str, int]:
        """Return what each queue uses; pods that are being deleted are gone."""
        found: dict[str, int] = {}
        for pod in self.records.pods.values():
            job = self.jobs.get(pod.gang)
            if job is not None and pod.holds and not pod.going:
                found[job.queue] = found.get(job.queue, 0) + pod.requests.get(GPU, 0)
        return found

    def look(self, now: float) -> None:
        """Take note."""
        self._past.append((now, self.now()))
        while self._past[0][0] < now - LATE_S - SOON_S:
            self._past.popleft()

    def most(self, queue: str, since: float) -> int:
        """Return the most that a queue used since a time."""
        return max((used.get(queue, 0) for at, used in self._past if at >= since), default=0)


class GivingWay:
    """Follows every mark. ``fits``: see ``Fits``; ``is_placed``: of a gang."""

    def __init__(
        self,
        records: Records,
        jobs: Mapping[str, Job],
        teams: Sequence[Team],
        fits: Fits,
        is_placed: Callable[[Job], bool],
    ) -> None:
        self._records, self._jobs = records, jobs
        self._teams = {team.name: team for team in teams}
        self._fits, self._is_placed = fits, is_placed
        self.usage = Usage(records, jobs)
        self.findings = GivingFindings()
        self._now = 0.0
        self._rough_at = 0.0  # when the last fault of a network or process was seen
        self._orders: dict[str, Order] = {}
        self._waits_since: dict[str, float] = {}
        self._waited_at: dict[str, float] = {}
        #: when gangs that had waited got their room
        self._started_at: dict[str, float] = {}
        #: gangs that were let alone after all, until when they may be
        self.spared: dict[str, float] = {}
        records.pod_listeners.append(self._on_pod)

    @property
    def lag_s(self) -> float:
        """Return how old what Muster knows may be."""
        return SOON_S if self._now - self._rough_at > LATE_S / 4 else LATE_S

    # ── marks ───────────────────────────────────────────────────────────────────────────

    def _on_pod(self, was: PodRecord | None, now: PodRecord | None) -> None:
        before = "" if was is None else was.gives_way_to
        after = "" if now is None else now.gives_way_to
        if now is not None and after and not before:
            self._ordered(now)
        elif now is not None and before and not after and now.gang in self._orders:
            del self._orders[now.gang]
            self.spared[now.gang] = self._now + 600.0  # extender.evictions.evictor.SPARED_S

    def _ordered(self, pod: PodRecord) -> None:
        if pod.gang in self._orders or pod.gang not in self._jobs:
            return
        held = (p for p in self._records.gang(pod.gang) if p.holds and not p.going)
        gpus = sum(p.requests.get(GPU, 0) for p in held)
        if pod.members_going:
            gpus = pod.members_going * pod.requests.get(GPU, 0)
        preemptor = self._job_of(pod.gives_way_to)
        members = frozenset(each.uid for each in self._records.gang(preemptor))
        is_whole = not pod.members_going
        self._orders[pod.gang] = Order(pod.gang, preemptor, self._now, is_whole, gpus, members)
        self.findings.orders += 1

    def _job_of(self, key: str) -> str:
        """Return the job of a gang's key; a lone pod's key ends with the pod's name."""
        name = key.rpartition("/")[2]
        pod = None if name in self._jobs else self._records.named(name)
        return name if pod is None else pod.gang

    def is_ordered(self, gang: str) -> bool:
        """Return whether a gang gives way, by a mark that one of its pods carries."""
        return any(pod.gives_way_to for pod in self._records.gang(gang))

    def evicted(self, gang: str) -> None:
        """Judge the first eviction of a gang that gives way."""
        order = self._orders.get(gang)
        if order is None or order.has_begun:
            return
        order.has_begun = True
        since = self._waits_since.get(order.preemptor)
        if self._has_more(order.preemptor):
            return
        if since is None and self._done_since(order.preemptor) > self.lag_s:
            self.findings.for_nothing.append(
                f"gang {gang} is evicted for {order.preemptor}, which does not wait any more"
            )

    def _has_more(self, gang: str) -> bool:
        """Return whether members above a gang's minimum wait: others may give way to them, too."""
        pods = self._records.gang(gang)
        return any(not (p.holds or p.ended or p.going or p.blocked) for p in pods)

    def _done_since(self, gang: str) -> float:
        """Return for how many seconds a gang has not been waiting."""
        return self._now - self._waited_at.get(gang, self._now)

    # ── each second ─────────────────────────────────────────────────────────────────────

    def look(self, now: float, *, is_rough: bool) -> None:
        """Follow everybody. ``is_rough``: a fault of a network or process lasts."""
        self._now = now
        self._rough_at = now if is_rough else self._rough_at
        self.usage.look(now)
        for name, job in self._jobs.items():
            if self.waits(job):
                self._waits_since.setdefault(name, now)
                self._waited_at[name] = now
            elif self._waits_since.pop(name, None) is not None and self._is_placed(job):
                self._started_at[name] = now
        for order in list(self._orders.values()):
            self._follow(order)

    def waits(self, job: Job) -> bool:
        """Return whether a whole gang waits for room, and none of it has any."""
        pods = self._records.gang(job.name)
        if job.over or any(pod.holds for pod in pods):
            return False
        return sum(not p.ended and not p.going and not p.blocked for p in pods) >= job.minimum

    def _follow(self, order: Order) -> None:
        if not order.is_judged and self._now - order.since > SOON_S:
            order.is_judged = True
            self.findings.below += self._below(order)
        victim, preemptor = self._jobs.get(order.victim), self._jobs.get(order.preemptor)
        if preemptor is None or self._is_settled(order, preemptor):
            self.findings.served += preemptor is not None and self._is_placed(preemptor)
            if order.has_begun or self._now - order.since > LATE_S:
                del self._orders[order.victim]
            return
        if order.has_begun and self._is_overtaken(order, preemptor):
            self.findings.overtaken += 1
            del self._orders[order.victim]
            return
        if victim is None or not order.is_whole:
            return
        holds = any(pod.holds for pod in self._records.gang(order.victim))
        if not holds:
            order.is_gone = True
        elif order.is_gone:
            self._came_back(order, preemptor)
            del self._orders[order.victim]

    def _is_settled(self, order: Order, preemptor: Job) -> bool:
        """Return whether the preemptor has its room, or is not there any more.

        A controller may have begun it anew: then no pod of those times is left.
        """
        now = {pod.uid for pod in self._records.gang(order.preemptor)}
        is_another = bool(order.members) and order.members.isdisjoint(now)
        return preemptor.over or is_another or self._is_placed(preemptor)

    def _is_overtaken(self, order: Order, preemptor: Job) -> bool:
        """Return whether one of its queue with a higher priority got its room since the order."""
        return any(
            since >= order.since
            and self._jobs[name].queue == preemptor.queue
            and self._jobs[name].priority > preemptor.priority
            for name, since in self._started_at.items()
            if name in self._jobs
        )

    def _came_back(self, order: Order, preemptor: Job) -> None:
        """Judge a gang that has room again: the one that it gave way to must not need just that."""
        since = self._waits_since.get(order.preemptor, self._now)
        if self._now - since <= self.lag_s or not self._fits(preemptor, order.victim):
            return
        if self._is_entitled(preemptor, without=order.victim):
            self.findings.cycles.append(
                f"gang {order.victim} gave way to {order.preemptor} and came back before it"
            )

    def _below(self, order: Order) -> Iterator[str]:
        """Yield the queue that uses less than it is entitled to since a gang of it gives way."""
        victim, preemptor = self._jobs.get(order.victim), self._jobs.get(order.preemptor)
        team = None if victim is None else self._teams.get(victim.queue)
        if team is None or preemptor is None or preemptor.queue == team.name:
            return
        most = self.usage.most(team.name, order.since - self.lag_s)
        kept = max(most - order.gpus, self._used_without(team.name, order.victim))
        if kept < team.entitled:
            yield (
                f"gang {order.victim} gives way to {order.preemptor}: queue {team.name} uses "
                f"{most} GPUs with its {order.gpus}, and is entitled to {team.entitled}"
            )

    def _used_without(self, queue: str, victim: str) -> int:
        """Return what a queue uses now beside a gang: others may have come as it was ordered."""
        pods = (pod for pod in self._records.gang(victim) if pod.holds and not pod.going)
        held = sum(pod.requests.get(GPU, 0) for pod in pods)
        return self.usage.now().get(queue, 0) - held

    def admits(self, job: Job) -> bool:
        """Return whether a gang's queue must let it run: it stays within its entitlement."""
        return self._is_entitled(job, without="")

    def _is_entitled(self, job: Job, *, without: str) -> bool:
        """Return whether a gang's queue stays within its entitlement with it."""
        team, other = self._teams.get(job.queue), self._jobs.get(without)
        if team is None:
            return not job.queue
        is_own = other is not None and other.queue == job.queue
        used = self._used_without(team.name, without if is_own else "")
        return used + job.minimum * job.gpus <= team.entitled

    # ── at rest ─────────────────────────────────────────────────────────────────────────

    def rest(self) -> None:
        """Judge a cluster in which nothing happens any more."""
        for pod in self._records.pods.values():
            if pod.gives_way_to and pod.node and not pod.ended and not pod.going:
                self.findings.half.append(f"gang {pod.gang} is marked, and {pod.name} stays")
        for order in self._orders.values():
            waits_s = self._now - self._waits_since.get(order.preemptor, self._now)
            if order.has_begun and waits_s > LATE_S:
                self.findings.for_nothing.append(
                    f"gang {order.victim} gave way to {order.preemptor}, which never ran"
                )
