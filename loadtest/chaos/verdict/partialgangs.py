"""Gangs that stand in part, judged by the API objects: who must go, and who must not be touched.

::

      some bound, too few ──► PARTIAL ──► enough bound: it ran, it is not taken down any more
                                │              until none of it is bound
                                └─ never ran, members are missing, all have a controller:
                                   gone within ``rollBackAfterSeconds`` of a calm time

What a process knows of the past is part of the rule (docs/adr/0010): one that is younger
than a partial gang takes it for one that ran when it is older than the patience, and a gang that
was whole for less than a census is not seen to have run.
"""

from dataclasses import dataclass, field
from typing import Final

from loadtest.chaos.simulation.jobs import Job
from loadtest.chaos.verdict.records import PodRecord

_NOTICED_S: Final = 15.0  # census and look, 5 s each; evictions; a kubelet's start time


@dataclass(slots=True)
class _Life:
    """One gang since it last had nothing bound. Times are virtual seconds."""

    first_bound: float
    partial_since: float | None = None
    whole_since: float | None = None
    ran: list[tuple[float, float]] = field(default_factory=list)  # from, until

    def seen_to_run(self, since: float) -> bool:
        """Whether a process that lives since then must know that the gang ran."""
        return any(until - max(begin, since) > _NOTICED_S for begin, until in self.ran)


@dataclass(slots=True)
class PartialGangJudge:
    """Judges how long gangs are partial. ``roll_back_s``: Muster's limit, None: no limit."""

    roll_back_s: float | None
    _lives: dict[str, _Life] = field(default_factory=dict)

    def look(self, job: Job, pods: list[PodRecord], now: float) -> None:
        """Follow one gang."""
        bound = [pod for pod in pods if pod.node and not pod.ended and not pod.going]
        if not bound:
            self._lives.pop(job.name, None)
            return
        life = self._lives.setdefault(job.name, _Life(now))
        if _whole(job, pods):
            life.whole_since = now if life.whole_since is None else life.whole_since
        elif life.whole_since is not None:
            life.ran.append((life.whole_since, now))
            life.whole_since = None
        if _is_partial(job, pods):
            life.partial_since = now if life.partial_since is None else life.partial_since
        else:
            life.partial_since = None

    def overdue(self, job: Job, now: float, *, calm_since: float, process_since: float) -> float:
        """Return for how long a partial gang has been standing that should be gone, else 0.

        ``calm_since``: when the last fault ended. ``process_since``: when the leading
        extender was started.
        """
        life = self._lives.get(job.name)
        if life is None or life.partial_since is None or self.roll_back_s is None:
            return 0.0
        believed_old = life.first_bound < process_since - self.roll_back_s + _NOTICED_S
        if life.ran or believed_old or not job.owned or job.over:
            return 0.0
        stands_s = now - max(life.partial_since, calm_since)
        return stands_s if stands_s > self.roll_back_s + _NOTICED_S else 0.0

    def wrongly_evicted(
        self, job: Job, pod: PodRecord, pods: list[PodRecord], process_since: float
    ) -> bool:
        """Whether evicting ``pod`` now takes down a running gang, or a pod that is not replaced."""
        if not pod.node or pod.ended or pod.going:
            return False
        life = self._lives.get(job.name)
        known = life is not None and life.seen_to_run(process_since)
        return not job.owned or _whole(job, pods) or known


def _whole(job: Job, pods: list[PodRecord]) -> bool:
    """Whether enough members stand on nodes to stay, or are done well."""
    stay = (p for p in pods if p.phase == "Succeeded" or (p.node and not p.ended and not p.going))
    return sum(1 for _ in stay) >= job.minimum


def _is_partial(job: Job, pods: list[PodRecord]) -> bool:
    """Whether it needs members that hold no room yet; released ones are kube-scheduler's."""
    placed = sum(bool(p.holds and not p.going) or p.phase == "Succeeded" for p in pods)
    return placed < job.minimum
