"""What is known of the run, from a watch of its own: gangs, hosts, rates.

Nothing here comes from Muster; the pods' objects say when and where they were bound.
"""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from loadtest.demo.plan import JOB_LABEL, Story, Submission
from loadtest.testbed.client.wirejson import JsonObject, labels_of, name_of, text_at
from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.reflector import Change

_RATE_WINDOW: Final = 1.0  # seconds over which the current rate is taken


@dataclass(slots=True)
class GangRecord:
    """One gang's life. Times in seconds of one clock, ``None`` while it has not come so far."""

    what: Submission
    submitted_at: float | None = None
    nodes: dict[str, str] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    succeeded: set[str] = field(default_factory=set)
    placed_at: float | None = None
    started_at: float | None = None

    @property
    def pending(self) -> bool:
        """Submitted and not placed."""
        return self.submitted_at is not None and self.placed_at is None

    @property
    def finished(self) -> bool:
        """All members succeeded."""
        return len(self.succeeded) == self.what.job.pods

    @property
    def wait(self) -> float | None:
        """Seconds from submission to the last member that the minimum needs."""
        if self.submitted_at is None or self.placed_at is None:
            return None
        return self.placed_at - self.submitted_at


class Tracker:
    """Fed by watches; read by the driver and the pictures."""

    def __init__(self, story: Story, checker: Checker) -> None:
        self.gangs = {s.job.name: GangRecord(s) for s in story.submissions}
        # Host → gang index → GPUs in use there.
        self.hosts: dict[str, Counter[int]] = {host.name: Counter() for host in story.fleet.hosts}
        self.checker = checker
        self.gpus_in_use = 0
        self.pods_created = 0
        self.bindings: list[float] = []
        self._recent: deque[float] = deque()
        self.peak_gpus = 0
        self.peak_rate = 0
        self._seen: set[str] = set()
        self.newly_bound: list[tuple[GangRecord, str]] = []

    def node(self, change: Change, node: JsonObject, at: float) -> None:
        """Take in a node."""
        self.checker.node(change, node, at)

    def pod(self, change: Change, pod: JsonObject, at: float) -> None:
        """Take in a pod."""
        self.checker.pod(change, pod, at)
        record = self.gangs.get(labels_of(pod).get(JOB_LABEL, ""))
        if record is None or change is Change.GONE:
            return
        name, node = name_of(pod), text_at(pod, "spec", "nodeName")
        if name not in self._seen:
            self._seen.add(name)
            self.pods_created += 1
        if node and name not in record.nodes:
            self._bound(record, name, node, at)
        phase = text_at(pod, "status", "phase")
        if phase == "Running":
            record.running.add(name)
        elif phase == "Succeeded" and name not in record.succeeded:
            record.succeeded.add(name)
            self._count(record, node, -record.what.job.gpus_per_pod)

    def _bound(self, record: GangRecord, name: str, node: str, at: float) -> None:
        record.nodes[name] = node
        self.bindings.append(at)
        self._recent.append(at)
        self.peak_rate = max(self.peak_rate, self.rate(at))
        if record.placed_at is None and len(record.nodes) >= record.what.minimum:
            record.placed_at = at
        self._count(record, node, record.what.job.gpus_per_pod)
        self.newly_bound.append((record, name))

    def _count(self, record: GangRecord, node: str, gpus: int) -> None:
        on_host = self.hosts.setdefault(node, Counter())
        on_host[record.what.index] += gpus
        if not on_host[record.what.index]:
            del on_host[record.what.index]
        self.gpus_in_use += gpus
        self.peak_gpus = max(self.peak_gpus, self.gpus_in_use)

    def rate(self, now: float) -> int:
        """Return the pods bound in the last second."""
        while self._recent and now - self._recent[0] > _RATE_WINDOW:
            self._recent.popleft()
        return len(self._recent)

    def submitted(self) -> list[GangRecord]:
        """Return the gangs that were submitted."""
        return [record for record in self.gangs.values() if record.submitted_at is not None]

    def placed(self) -> list[GangRecord]:
        """Return the gangs that were placed, in order of placement."""
        done = [record for record in self.gangs.values() if record.placed_at is not None]
        return sorted(done, key=lambda record: record.placed_at or 0.0)

    def pending(self) -> list[GangRecord]:
        """Return the gangs that wait, the largest first."""
        waiting = [record for record in self.gangs.values() if record.pending]
        return sorted(waiting, key=lambda record: (-record.what.job.gpus, record.what.index))

    def occupancy(self) -> dict[str, Counter[int]]:
        """Return a copy of who is on which host."""
        return {host: Counter(gangs) for host, gangs in self.hosts.items()}
