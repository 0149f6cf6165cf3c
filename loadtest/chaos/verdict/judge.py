"""The judge of a run: by the API objects alone, and by what the users asked for.

* **Double allocations**: ``loadtest.testbed.oracles.checker``, fed every change as it happens.
* **Waits**: every second, for each gang that waits, whether it *fits*: a test of its own
  over what is bound and pinned. How long the same gang fitted without pause and was not
  placed is the wait; it may not exceed ``BOUND_S``.
* **At rest** (no new fault, no arrival, no end, for ``REST_S``; nodes are as they are): no
  gang fits that is not placed, no pod is neither bound nor waiting for room, and
  required levels are respected.

The fit is exact for what runs here: all members of a gang are alike, so a domain takes
the sum over its nodes of how many fit into each.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from loadtest.chaos.simulation.jobs import Job
from loadtest.chaos.simulation.server import Server
from loadtest.chaos.simulation.volumes import Volumes
from loadtest.chaos.verdict.givingway import GivingWay
from loadtest.chaos.verdict.partialgangs import PartialGangJudge
from loadtest.chaos.verdict.records import ALL_PODS, NODES, RACK, PodRecord, Records, waiting
from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.apiserver.store import Change as Written
from loadtest.testbed.standins.reflector import Change
from loadtest.testbed.standins.scheduler.objects import Resources

GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
BOUND_S: Final = 300.0
"""hold_seconds (60) + longest back-off of a gang (60) + what a watch may hang before it is
given up (150) + the longest fault of the network (30)."""
REST_S: Final = 200.0
"""Less than the 300 s after which kube-scheduler looks at a pod that was not woken
(scheduling_queue.go, DefaultPodMaxInUnschedulablePodsDuration): a pod that sleeps is found."""


@dataclass(slots=True)
class Findings:
    """What must be empty, and how long it took."""

    lost: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    longest_wait_s: float = 0.0
    placed: int = 0
    terms: int = 0  # how often a replica took the Lease
    longest_take_over_s: float = 0.0


class Judge:
    """Watches a server. ``now``: virtual seconds."""

    def __init__(
        self,
        server: Server,
        records: Records,
        jobs: dict[str, Job],
        volumes: Volumes,
        partials: PartialGangJudge,
    ) -> None:
        self._records, self._jobs = records, jobs
        self._volumes, self._partials = volumes, partials
        self._checker = Checker()
        self._now = 0.0
        self._fits_since: dict[str, float] = {}
        self._placed: set[str] = set()
        self.findings = Findings()
        #: Gangs that give way, where they do.
        self.giving: GivingWay | None = None
        server.collection(NODES).listeners.append(self._node)
        server.collection(ALL_PODS).listeners.append(self._pod)

    def _node(self, change: Written) -> None:
        kind = Change.GONE if change.verb == "DELETED" else Change.PRESENT
        self._checker.node(kind, change.obj, self._now)

    def _pod(self, change: Written) -> None:
        kind = Change.GONE if change.verb == "DELETED" else Change.PRESENT
        self._checker.pod(kind, change.obj, self._now)

    @property
    def double(self) -> list[str]:
        """Every time that room was given away twice."""
        return [finding.text for finding in self._checker.double_allocations()]

    # ── waits ───────────────────────────────────────────────────────────────────────────

    def look(self, now: float) -> None:
        """Measure how long each gang that fits has been waiting."""
        self._now = now
        fits: dict[str, float] = {}
        free = Free(self._records)
        for name, job in self._jobs.items():
            pods = self._records.gang(name)
            self._partials.look(job, pods, now)
            if name not in self._placed and _counted(pods) >= job.minimum:
                self._placed.add(name)
                self.findings.placed += 1
            if self._must_be_placed(job, pods, free):
                fits[name] = self._fits_since.get(name, now)
                self._waited(job, now - fits[name])
        self._fits_since = fits

    def _waited(self, job: Job, seconds: float) -> None:
        self.findings.longest_wait_s = max(self.findings.longest_wait_s, seconds)
        if seconds > BOUND_S:
            text = f"gang {job.name} fits and has waited for more than {BOUND_S:.0f} s"
            if text not in self.findings.lost:
                self.findings.lost.append(text)

    def could_be_placed(self, job: Job, pods: list[PodRecord], free: "Free") -> bool:
        """Whether members wait that make the gang whole, and there is room for them."""
        wait = waiting(pods)
        if job.over or not wait:
            return False
        placed = _counted(pods)
        needed = max(1, job.minimum - placed)
        if len(wait) < needed:
            return False
        siblings, out = [p.holds for p in pods], self._volumes.out(job.name)
        return free.takes(wait[0].requests, needed, job.required, siblings, out)

    def _must_be_placed(self, job: Job, pods: list[PodRecord], free: "Free") -> bool:
        """Whether it could be placed, and no queue or promise of another gang keeps it off."""
        if not self.could_be_placed(job, pods, free):
            return False
        return self.giving is None or (self.giving.admits(job) and not self._any_lacks_room(free))

    def _any_lacks_room(self, free: "Free") -> bool:
        """Whether a whole gang waits for room: it may be promised what is free."""
        there = ((job, self._records.gang(name)) for name, job in self._jobs.items())
        return any(
            not job.over and len(waiting(pods)) >= max(1, job.minimum - _counted(pods))
            and waiting(pods) and not self.could_be_placed(job, pods, free)
            for job, pods in there
        )  # fmt: skip

    def would_fit(self, job: Job, without: str) -> bool:
        """Whether a gang would be placed now if another one, "" for none, held nothing."""
        pods = self._records.gang(job.name)
        return self.could_be_placed(job, pods, Free(self._records, without))

    def evicted(self, name: str, process_since: float) -> Callable[[], None]:
        """Judge an eviction that Muster attempts; to be called if it is carried out."""
        pod = self._records.named(name)
        job = None if pod is None else self._jobs.get(pod.gang)
        found: list[str] = []
        if self.giving is not None and pod is not None and self.giving.is_ordered(pod.gang):
            giving, gang = self.giving, pod.gang
            return lambda: giving.evicted(gang)
        if pod is not None and job is not None and not job.over:
            pods = self._records.gang(job.name)
            if self._partials.wrongly_evicted(job, pod, pods, process_since):
                found.append(f"pod {name} of a gang that runs was evicted")
        return lambda: self.findings.wrong.extend(found)

    # ── at rest ─────────────────────────────────────────────────────────────────────────

    def rest(self, *, calm_since: float, process_since: float, drained: bool) -> None:
        """Judge a cluster in which nothing happens any more; see ``Partial gangs.overdue``."""
        free = Free(self._records)
        for job in list(self._jobs.values()):
            pods = self._records.gang(job.name)
            self._judge_gang(job, pods, free, drained=drained)
            stands_s = self._partials.overdue(
                job, self._now, calm_since=calm_since, process_since=process_since
            )
            if stands_s:
                text = f"gang {job.name}: a partial gang for {stands_s:.0f} s, and not rolled back"
                self.findings.partial.append(text)
        for pod in self._records.pods.values():
            if pod.gang and pod.target and not pod.node and not pod.ended:
                self.findings.lost.append(f"pod {pod.name}: released to {pod.target}, not bound")

    def _judge_gang(self, job: Job, pods: list[PodRecord], free: "Free", *, drained: bool) -> None:
        findings, bound = self.findings, [p for p in pods if p.node and not p.ended]
        if self._must_be_placed(job, pods, free):
            findings.lost.append(f"gang {job.name}: {len(waiting(pods))} members wait and fit")
        complete = len([p for p in pods if p.phase != "Failed"]) >= job.minimum
        if drained and 0 < len(bound) < job.minimum and complete:
            findings.partial.append(f"gang {job.name}: {len(bound)} of {job.minimum} bound")
        domains = {_domain(self._records, p.node, job.required) for p in bound}
        if job.required and len(domains) > 1:
            findings.wrong.append(f"gang {job.name}: spread over {sorted(domains)}")


def _counted(pods: list[PodRecord]) -> int:
    """Return the members that hold room, or are done with it well."""
    return sum(bool(pod.holds) or pod.phase == "Succeeded" for pod in pods)


def _domain(records: Records, node: str, level: str) -> str:
    found = records.nodes.get(node)
    if found is None:
        return ""
    return found.rack if level == RACK else f"b{int(found.rack[1:]) % 2}"


class Free:
    """The room of one moment."""

    def __init__(self, records: Records, without: str = "") -> None:
        """``without``: a gang that counts as gone."""
        self._records, self._left = records, records.free()
        for pod in records.gang(without) if without else ():
            room = self._left.get(pod.holds, {})
            for resource, asked in pod.requests.items():
                room[resource] = room.get(resource, 0) + asked

    def takes(
        self,
        asked: Resources,
        count: int,
        level: str,
        siblings: list[str],
        out: frozenset[str],
    ) -> bool:
        """Whether ``count`` members fit into the siblings' domain, or any if there is none.

        ``out``: nodes that do not count.
        """
        held = {_domain(self._records, node, level) for node in siblings if node}
        room: dict[str, int] = {}
        for name, fits in self._rooms(asked):
            if name in out:
                continue
            domain = _domain(self._records, name, level) if level else "all"
            room[domain] = room.get(domain, 0) + fits
        if level and held:
            return all(room.get(domain, 0) >= count for domain in held) and len(held) == 1
        return max(room.values(), default=0) >= count

    def _rooms(self, asked: Resources) -> Iterator[tuple[str, int]]:
        for name, node in self._records.nodes.items():
            if node.open:
                left = self._left[name]
                yield name, max(0, min(left.get(key, 0) // n for key, n in asked.items() if n))
