"""What came out: the figures, and the picture of the fullest moment."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadtest.demo.plan import Story
from loadtest.demo.tracker import GangRecord, Tracker
from loadtest.testbed.oracles.checker import Finding


@dataclass(frozen=True, slots=True)
class Explained:
    """A gang that waited, and the reason that the extender gave."""

    gang: str
    pods: int
    gpus: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Which gang was on which host at the fullest moment."""

    #: Seconds since the start.
    at: float
    gpus: int
    hosts: dict[str, Counter[int]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that is shown at the end."""

    story: Story
    tracker: Tracker
    control_plane: str
    kubernetes: str | None  # the minor of a real control plane
    #: Time from the first job to the end.
    seconds: float
    partial: list[Finding]
    double: list[Finding]
    picture: Picture
    explained: Explained | None
    cpu: dict[str, float] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether something was placed, all of it whole, and nothing twice."""
        return bool(self.tracker.placed()) and not self.partial and not self.double

    def figures(self) -> dict[str, object]:
        """Return the figures as one JSON object. Times in seconds."""
        tracker = self.tracker
        placed, waits = tracker.placed(), sorted(w for r in tracker.placed() if (w := r.wait))
        return {
            "control_plane": self.control_plane,
            "kubernetes": self.kubernetes,
            "fleet": self.story.fleet.title,
            "trace": self.story.trace.title,
            "seed": self.story.seed,
            "hosts": len(self.story.fleet.hosts),
            "gpus": self.story.fleet.gpus,
            "seconds": round(self.seconds, 2),
            "gangs_submitted": len(tracker.submitted()),
            "gangs_placed": len(placed),
            "gangs_pending": len(tracker.pending()),
            "gangs_finished": sum(record.finished for record in placed),
            "gangs_of_one": sum(r.what.job.pods == 1 for r in tracker.submitted()),
            "gangs_within_required_domain": sum(within_required(self, r) for r in placed),
            "partial_gangs": len(self.partial),
            "double_allocations": len(self.double),
            "pods_created": tracker.pods_created,
            "pods_bound": len(tracker.bindings),
            "pods_per_second": round(_rate(tracker.bindings), 1),
            "pods_per_second_peak": tracker.peak_rate,
            "gang_wait_p50_s": round(quantile(waits, 0.50), 3),
            "gang_wait_p95_s": round(quantile(waits, 0.95), 3),
            "gpus_in_use_peak": tracker.peak_gpus,
            "findings": [finding.text for finding in (*self.partial, *self.double)],
            "cpu_seconds": {name: round(used, 2) for name, used in self.cpu.items()},
        }


def domains(outcome: Outcome, record: GangRecord) -> tuple[int, int]:
    """Return how many blocks and racks a gang uses."""
    where = {host.name: host for host in outcome.story.fleet.hosts}
    used = [where[node] for node in record.nodes.values() if node in where]
    return len({h.block for h in used}), len({(h.block, h.rack) for h in used})


def within_required(outcome: Outcome, record: GangRecord) -> bool:
    """Return whether a gang with a required level lies in one domain of it."""
    required = record.what.gang.required
    blocks, racks = domains(outcome, record)
    return (racks if required.endswith("rack") else blocks) == 1 if required else True


def fewest_racks(outcome: Outcome, record: GangRecord) -> int:
    """Return how many racks the gang needs at least, were the fleet empty."""
    racks = Counter((host.block, host.rack) for host in outcome.story.fleet.hosts)
    left, count = record.what.job.pods, 0
    per_host = max(1, 8 // record.what.job.gpus_per_pod)
    for hosts in sorted(racks.values(), reverse=True):
        if left <= 0:
            break
        left -= hosts * per_host
        count += 1
    return count


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of the sorted values lie; 0 without any."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def _rate(bindings: Sequence[float]) -> float:
    """Return bound pods per second from the first to the last binding."""
    if len(bindings) < 2:
        return float(len(bindings))
    return (len(bindings) - 1) / max(max(bindings) - min(bindings), 1e-3)
