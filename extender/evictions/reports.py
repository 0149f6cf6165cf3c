"""What people see of gangs that give way: Events, metrics and log lines."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from extender.metrics import ExtenderMetrics
from extender.planning.evictionorders import EvictedGang
from extender.reporting.boundgangs import EventText
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey
from muster.kube.wire import Pod
from muster.kube.writing.events import EventRecorder, Regarding

log = logging.getLogger(__name__)

GIVES_WAY: Final = "GivesWay"
STAYS: Final = "EvictionRefused"
HANGS: Final = "EvictionHangs"
_ACTION: Final = "Evicting"


@dataclass(frozen=True, slots=True)
class EvictionReports:
    """Reports each step of a gang that gives way."""

    reporter: DecisionReporter
    recorder: EventRecorder
    metrics: ExtenderMetrics

    def suspended(self, victim: EvictedGang, preemptor: GangKey, job: Regarding) -> None:
        """Report that a job is suspended."""
        self._begun(victim, preemptor, "suspended")
        text = f"suspended, {_text(victim, preemptor)}"
        self.recorder.record(job, GIVES_WAY, text, action=_ACTION, warning=True)

    def evicted(self, victim: EvictedGang, preemptor: GangKey, pods: Sequence[Pod]) -> None:
        """Report that the members of a gang are evicted, on one of them and on its controller."""
        self._begun(victim, preemptor, "evicted")
        text = f"gang {victim.gang} is evicted, {_text(victim, preemptor)}"
        self._on(pods, victim, GIVES_WAY, text)

    def stays(self, victim: EvictedGang, preemptor: GangKey, pods: Sequence[Pod], why: str) -> None:
        """Report that a gang is let alone: its eviction is refused."""
        self.metrics.given_way.labels("refused").inc()
        log.warning("gang stays", extra={"gang": victim.gang, "for": preemptor, "error": why})
        should = f"leave {victim.leaves}" if victim.leaves else f"give way to gang {preemptor}"
        text = f"gang {victim.gang} should {should} and stays: {why}"
        self._on(pods, victim, STAYS, text)

    def hangs(self, victim: EvictedGang, pods: Sequence[Pod], names: str, seconds: float) -> None:
        """Report members that do not end; ``names``: with what keeps them."""
        log.warning("eviction hangs", extra={"gang": victim.gang, "pods": names})
        verb = f"leaves {victim.leaves}" if victim.leaves else "gives way"
        text = (
            f"gang {victim.gang} {verb} and has not ended after {seconds:.0f} s: {names}; "
            "remove the finalizer, or look at the node's kubelet"
        )
        self._on(pods, victim, HANGS, text)

    def ended(self, victim: EvictedGang, seconds: float) -> None:
        """Report that the room of a gang is free."""
        log.info("gang gave way", extra={"gang": victim.gang, "seconds": round(seconds, 3)})

    def _begun(self, victim: EvictedGang, preemptor: GangKey, outcome: str) -> None:
        self.metrics.given_way.labels(outcome).inc()
        self.metrics.lost_seconds.inc(victim.lost_seconds)
        log.warning(
            "gang gives way",
            extra={
                "gang": victim.gang,
                "for": preemptor,
                "how": outcome,
                "why": victim.why,
                "lost_device_seconds": round(victim.lost_seconds),
            },
        )

    def _on(self, pods: Sequence[Pod], victim: EvictedGang, reason: str, text: str) -> None:
        for pod in pods[:1]:
            self.reporter.record_bound(pod, EventText(victim.gang, reason, text, warning=True))


def _text(victim: EvictedGang, preemptor: GangKey) -> str:
    purpose = f"gang {preemptor} gets its room"
    if victim.leaves:
        purpose = f"{victim.leaves} can be drained"
    parts = [f"so that {purpose}: {victim.why}"]
    if victim.lost_seconds:
        parts.append(f"{victim.lost_seconds:.0f} device-seconds of work are lost")
    return "; ".join(parts)
