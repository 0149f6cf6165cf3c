"""One episode from the empty cluster to rest, and many of them.

::

    arrivals, faults, ends ──steps──► faults stop, nodes stay ──► rest: whoever fits is
    (the judge looks every second)    as they are                 placed, none is stuck
                                                                      │ nodes are mended
         nothing waits, nothing partial ◄── rest ◄── what is placed ◄─ rest
                                                     ends, again and again
"""

import asyncio
import gc
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from extender.config.settings import ExtenderConfig
from loadtest.chaos.faults.faults import Faults
from loadtest.chaos.muster import LEASES, Muster
from loadtest.chaos.settings import EPISODE_STEPS, Settings, Shape, shape_of, with_teams
from loadtest.chaos.simulation.clock import EPOCH
from loadtest.chaos.simulation.link import Limit, Link
from loadtest.chaos.simulation.loop import VirtualLoop
from loadtest.chaos.simulation.scheduler import KubeScheduler
from loadtest.chaos.simulation.server import Server
from loadtest.chaos.simulation.world import World
from loadtest.chaos.verdict.entitledwaits import BOUND_S as ENTITLED_BOUND_S
from loadtest.chaos.verdict.entitledwaits import EntitledWaits
from loadtest.chaos.verdict.givingway import GivingFindings, GivingWay
from loadtest.chaos.verdict.judge import BOUND_S, REST_S, Findings, Judge
from loadtest.chaos.verdict.partialgangs import PartialGangJudge
from loadtest.chaos.verdict.picture import differences
from loadtest.chaos.verdict.records import Records
from loadtest.chaos.verdict.terms import Terms

_VALIDATE_EVERY: Final = 20  # looks of the judge, so seconds
_DRAINS: Final = 40  # rounds of "what is placed ends"; more than jobs can queue up here


@dataclass(slots=True)
class Outcome:
    """What an episode came to."""

    seed: str
    steps: int = 0
    virtual_s: float = 0.0
    double: list[str] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    #: Of gangs that give way; empty without queues.
    giving: GivingFindings = field(default_factory=GivingFindings)
    entitled_late: list[str] = field(default_factory=list)
    longest_entitled_wait_s: float = 0.0

    @property
    def problems(self) -> list[str]:
        """Everything that must not have happened, in words."""
        found, giving = self.findings, self.giving
        asked = (
            *(self.double, found.partial, found.lost, found.wrong, found.late, found.crashes),
            *(giving.half, giving.cycles, giving.below, giving.for_nothing, self.entitled_late),
        )
        return [text for texts in asked for text in texts]


def episode(settings: Settings, tell: Callable[[str], None] = print) -> Outcome:
    """Run one episode to its end."""
    outcome = Outcome(settings.seed)
    loop = VirtualLoop(outcome.findings.crashes.append)
    gc.disable()  # what it collects, it ends; when it runs would become part of the run
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(_Episode(settings, outcome, tell).run())
    finally:
        gc.enable()
        gc.collect()
    outcome.virtual_s = loop.time()
    return outcome


class _Episode:
    def __init__(self, settings: Settings, outcome: Outcome, tell: Callable[[str], None]) -> None:
        self._settings, self._outcome, self._tell = settings, outcome, tell
        self._enough = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Build everything, let it go wrong, bring it to rest, judge."""
        self._build(random.Random(self._settings.seed))
        self._muster.start()
        self._scheduler.restart()
        for job in (
            self._world.arrivals(),
            self._world.collect(),
            self._faults.run(),
            self._watch(),
        ):
            self._tasks.append(asyncio.get_running_loop().create_task(job))
        await self._enough.wait()
        await self._settle()
        self._outcome.double = self._judge.double
        found = self._outcome.findings
        found.late += self._terms.idle
        found.longest_take_over_s = self._terms.longest_take_over_s
        found.terms = self._terms.taken
        for task in self._tasks:
            task.cancel()

    def _build(self, dice: random.Random) -> None:
        def child() -> random.Random:
            return random.Random(dice.getrandbits(63))

        shape = shape_of(child())
        if self._settings.queues:
            shape = with_teams(shape, child())
        loop = asyncio.get_running_loop()
        server = Server(lambda: EPOCH + loop.time(), child())
        self._records = Records()
        self._records.follow(server)
        self._world = World(server, self._records, shape, child(), self._count)
        partials = PartialGangJudge(shape.config.roll_back_after_seconds)
        self._judge = Judge(server, self._records, self._world.jobs, self._world.volumes, partials)
        self._judge.findings = self._outcome.findings
        self._build_teams(shape)
        self._muster = Muster(
            server, shape.config, child(), self._count, self._crashed, count=shape.replicas
        )
        self._terms = _terms(self._muster, shape.config)
        self._terms.late_writes = self._outcome.findings.late
        server.collection(LEASES).listeners.append(
            lambda change: self._terms.lease(change, loop.time())
        )
        self._scheduler = KubeScheduler(
            server,
            self._muster,
            child(),
            self._count,
            binds=shape.binds,
            plugin=self._world.volumes.failure,
        )
        self._faults = self._make_faults(shape, child())
        for link in (*self._muster.links, self._scheduler.link):
            link.traces.append(self._trace)
        for link in self._muster.links:
            link.write_listeners.append(self._wrote)
        self._trace(f"{shape}")

    def _build_teams(self, shape: Shape) -> None:
        """Build the judges of gangs that give way, where they do."""
        self._giving: GivingWay | None = None
        self._waits: EntitledWaits | None = None
        if not shape.teams:
            return
        judge, records, world = self._judge, self._records, self._world
        giving = GivingWay(records, world.jobs, shape.teams, judge.would_fit, world.is_placed)
        giving.findings = self._outcome.giving
        self._giving = judge.giving = giving
        self._waits = EntitledWaits(records, world.jobs, shape.teams, judge.would_fit, giving)
        self._waits.late = self._outcome.entitled_late

    def _look_at_teams(self, now: float) -> None:
        if self._giving is None or self._waits is None:
            return
        self._giving.look(now, is_rough=not all(r.fit for r in self._muster.replicas))
        self._waits.look(now)
        self._outcome.longest_entitled_wait_s = self._waits.longest_s

    def _make_faults(self, shape: Shape, dice: random.Random) -> Faults:
        return Faults(
            self._world,
            self._muster,
            self._scheduler,
            dice,
            calm=shape.calm,
            without=self._settings.without,
            report=self._fault,
        )

    def _wrote(self, link: Link, method: str, path: str, limit: Limit | None) -> Callable[[], None]:
        if limit is not None:
            self._terms.wrote(link.name, f"{method} {path}")
        if method == "POST" and path.endswith("/eviction"):
            since = max(replica.since for replica in self._muster.replicas)
            return self._judge.evicted(path.split("/")[-2], since)
        return lambda: None

    def _fault(self, text: str) -> None:
        self._count(1)
        self._trace(text)

    def _count(self, steps: int) -> None:
        self._outcome.steps += steps
        if self._outcome.steps >= self._settings.steps:
            self._enough.set()

    def _crashed(self, text: str) -> None:
        self._outcome.findings.crashes.append(text)
        self._trace(f"CRASH {text}")

    def _trace(self, text: str) -> None:
        if self._settings.trace:
            now = asyncio.get_running_loop().time()
            self._tell(f"{now:10.3f} {self._outcome.steps:7} {text}")

    async def _watch(self) -> None:
        looks = known = 0
        while True:
            await asyncio.sleep(1.0)
            looks += 1
            self._judge.look(asyncio.get_running_loop().time())
            self._look_at_teams(asyncio.get_running_loop().time())
            self._terms.look(asyncio.get_running_loop().time())
            if looks % _VALIDATE_EVERY == 0 and self._muster.extender is not None:
                self._muster.extender.engine.state.validate()
            found = [*self._outcome.problems, *self._judge.double]
            for text in found[known:]:
                self._trace(f"FOUND {text}")
            known = len(found)

    # ── to rest ─────────────────────────────────────────────────────────────────────────

    async def _settle(self) -> None:
        """Stop what goes wrong, then what arrives; judge; then let everything finish."""
        self._tasks[0].cancel()
        self._tasks[2].cancel()
        self._faults.stop()
        self._world.ageing = False
        self._trace("faults and arrivals have ended")
        self._calm_since = asyncio.get_running_loop().time()
        await asyncio.sleep(REST_S)
        self._trace("at rest")
        self._rest(drained=False)
        self._compare()
        self._faults.mend()
        self._trace("mended")
        await asyncio.sleep(REST_S)
        self._rest(drained=False)
        for _ in range(_DRAINS):
            self._world.finish_placed()
            await asyncio.sleep(30.0)
            if not self._world.jobs:
                break
        self._world.ageing = False
        await asyncio.sleep(REST_S)
        self._rest(drained=True)
        self._compare()

    def _rest(self, *, drained: bool) -> None:
        leader = self._muster.leader
        if leader is None:
            self._outcome.findings.late.append("at rest, and nobody leads")
            return
        if self._giving is not None:
            self._giving.rest()
        self._judge.rest(calm_since=self._calm_since, process_since=leader.since, drained=drained)

    def _compare(self) -> None:
        """Compare the extender's picture with the API objects; nothing is on its way."""
        for replica in self._muster.replicas:
            if replica.extender is not None:
                state = replica.extender.engine.state
                state.validate()
                self._outcome.findings.wrong += differences(state, self._records)


def _terms(muster: Muster, config: ExtenderConfig) -> Terms:
    election = config.leader_election
    slack_s = 3 * election.retry_period_seconds + 2.0
    return Terms(muster, float(election.lease_duration_seconds), slack_s)


def episodes(seed: int, steps: int) -> Iterator[Settings]:
    """Yield the episodes of a run: ``steps`` in all, each with a seed of its own."""
    number = 0
    while steps > 0:
        yield Settings(f"{seed}/{number}", min(steps, EPISODE_STEPS))
        steps -= EPISODE_STEPS
        number += 1


def report(seed: int, outcomes: list[Outcome], *, queues: bool = False) -> dict[str, object]:
    """Return what ``muster bench chaos`` prints."""
    found = [outcome.findings for outcome in outcomes]
    return {
        "seed": seed,
        "steps": sum(outcome.steps for outcome in outcomes),
        "episodes": len(outcomes),
        "virtual_hours": round(sum(outcome.virtual_s for outcome in outcomes) / 3600, 2),
        "gangs_placed": sum(f.placed for f in found),
        "double_allocations": sum(len(outcome.double) for outcome in outcomes),
        "partial_gangs": sum(len(f.partial) for f in found),
        "lost_pods": sum(len(f.lost) for f in found),
        "scattered_gangs": sum(len(f.wrong) for f in found),
        "late_writes": sum(len(f.late) for f in found),
        "crashes": sum(len(f.crashes) for f in found),
        "longest_wait_that_fitted_s": round(max(f.longest_wait_s for f in found), 1),
        "bound_s": BOUND_S,
        "terms": sum(f.terms for f in found),
        "longest_take_over_s": round(max(f.longest_take_over_s for f in found), 1),
        **(_of_teams(outcomes) if queues else {}),
        "problems": [f"{o.seed}: {text}" for o in outcomes for text in o.problems][:20],
    }


def _of_teams(outcomes: list[Outcome]) -> dict[str, object]:
    """Return what is said of gangs that give way."""
    giving = [outcome.giving for outcome in outcomes]
    waits = (outcome.longest_entitled_wait_s for outcome in outcomes)
    return {
        "gangs_marked": sum(f.orders for f in giving),
        "gangs_served": sum(f.served for f in giving),
        "gangs_overtaken": sum(f.overtaken for f in giving),
        "half_evicted_gangs": sum(len(f.half) for f in giving),
        "evict_and_return_cycles": sum(len(f.cycles) for f in giving),
        "queues_below_entitlement": sum(len(f.below) for f in giving),
        "evictions_for_nothing": sum(len(f.for_nothing) for f in giving),
        "late_entitled_gangs": sum(len(outcome.entitled_late) for outcome in outcomes),
        "longest_entitled_wait_s": round(max(waits), 1),
        "entitled_bound_s": ENTITLED_BOUND_S,
    }
