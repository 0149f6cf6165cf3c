"""How long a gang waits that is entitled to room which one other gang could give it.

Judged is the first of the line: no gang waits with a higher priority, none with the same in its
queue, and none that is entitled in another. Its queue stays within its entitlement with it, and it
fits as soon as one gang ends, of a lower priority in its queue, or of another queue that stays at
or above its entitlement without it. So Muster must find a set of victims, and nobody comes back.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from loadtest.chaos.simulation.jobs import Job
from loadtest.chaos.simulation.teams import GPU, Team
from loadtest.chaos.verdict.givingway import Fits, GivingWay
from loadtest.chaos.verdict.judge import BOUND_S as ROUGH_S
from loadtest.chaos.verdict.records import Records

BOUND_S: Final = ROUGH_S + 60.0 + 2 * 15.0 + 30.0 + 5.0
"""What a gang that fits waits at most (``judge.BOUND_S``); a minute until its queue's gangs may
give way again (``gangsPerMinute``); two looks of the promise (``backfill.refreshSeconds``);
``budgetSeconds`` for a first set that is refused; and the kubelets, 2 s, with what they start."""


class EntitledWaits:
    """Measures waits. ``giving``: what gives way, and what queues use."""

    def __init__(
        self,
        records: Records,
        jobs: Mapping[str, Job],
        teams: Sequence[Team],
        fits: Fits,
        giving: GivingWay,
    ) -> None:
        self._records, self._jobs, self._fits, self._giving = records, jobs, fits, giving
        self._teams = {team.name: team for team in teams}
        self._first = ""
        self._since = 0.0
        self.longest_s = 0.0
        self.late: list[str] = []

    def look(self, now: float) -> None:
        """Look whose turn it is, and since when."""
        first = self._judged(now)
        if first != self._first:
            self._first, self._since = first, now
        if not first:
            return
        waits_s = now - self._since
        self.longest_s = max(self.longest_s, waits_s)
        text = f"gang {first} is entitled to what others borrow, and waits for over {BOUND_S:.0f} s"
        if waits_s > BOUND_S and text not in self.late:
            self.late.append(text)

    def _judged(self, now: float) -> str:
        """Return the gang that is first and could be served, "" for none."""
        waiting = [job for job in self._jobs.values() if self._giving.waits(job)]
        most = max((job.priority for job in waiting), default=0)
        first = [job for job in waiting if job.priority == most]
        used = self._giving.usage.now()
        entitled = [job for job in first if self._is_entitled(job, used)]
        if len(entitled) != 1 or sum(job.queue == entitled[0].queue for job in first) > 1:
            return ""
        return entitled[0].name if self._is_served_by_one(entitled[0], used, now) else ""

    def _is_entitled(self, job: Job, used: Mapping[str, int]) -> bool:
        team = self._teams.get(job.queue)
        return team is not None and used.get(team.name, 0) + job.minimum * job.gpus <= team.entitled

    def _is_served_by_one(self, job: Job, used: Mapping[str, int], now: float) -> bool:
        return any(
            self._gives_way(other, job, used, now) and self._fits(job, other.name)
            for other in self._jobs.values()
        )

    def _gives_way(self, other: Job, job: Job, used: Mapping[str, int], now: float) -> bool:
        """Return whether one gang must give way to another."""
        pods = [pod for pod in self._records.gang(other.name) if pod.holds]
        if not pods or any(pod.going or not pod.node for pod in pods):
            return False
        if self._giving.spared.get(other.name, 0.0) > now:
            return False
        if other.queue == job.queue:
            return other.priority < job.priority
        team = self._teams.get(other.queue)
        gpus = sum(pod.requests.get(GPU, 0) for pod in pods)
        return team is not None and used.get(team.name, 0) - gpus >= team.entitled
