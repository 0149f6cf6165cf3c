"""Muster's side: the extender's planner with queues, fed with the events that it would see.

::

    submitted   GangUpserted, PodUpserted of each member (gated)
    start       Planner.settle ─► plans held ─► release: PodReleased, PodUpserted (bound) of each
    give way    RoomMaker ─► orders: as ended, then as submitted (``TakeBack``)
    ended       PodGone of each member, GangGone

Only what lies between the parts (API server, kube-scheduler) takes no time here. The planner reads
virtual time; the clock of its slices stands still, so it ends at once.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.pendingpods import PendingPods
from extender.planning.evictionorders import EvictionOrder
from extender.planning.queueturns import QueueTurns
from extender.planning.roommaker import RoomMaker
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from loadtest.queuereplay.planner import LonePlanner, no_rooms
from loadtest.queuereplay.replay import CHECKPOINT_S, ReplayError, StartPromise
from loadtest.queuereplay.submissions import Submission
from loadtest.testbed.client.nodes import GPU
from loadtest.traces.fleet import Fleet, Host
from muster.cluster.events import (
    GangGone,
    GangUpserted,
    NodeUpserted,
    PlanNote,
    PodGone,
    PodReleased,
    PodUpserted,
    QueueUpserted,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.quota.aliases import OWN, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.preemptionpolicy import OWN_PREEMPTION
from muster.cluster.quota.queuespec import WEIGHT_ONE, QueueSpec, ShareFunction
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.kube.names import BLOCK, DEFAULT_LEVELS, HOST, PLAN_GATE, RACK, ZONE
from muster.queueing.backfill.expectedends import Going
from muster.queueing.preemption.policies import PreemptionPolicies, RoomPermission
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.kai import DIALECT as KAI
from muster.workloads.queues.preemption.kaipolicy import kai_preemption
from muster.workloads.queues.reading import queue_name, whole_cluster

EPOCH: Final = 1.5e9
"""Time 0 of the replay in seconds since the epoch (2017); for the model 0 means unknown."""
_NAMESPACE: Final = "replay"
_POLICIES: Final = PreemptionPolicies({OWN: RoomPermission(), KAI: RoomPermission()})
_HOST_MILLICPU: Final = 192_000
_HOST_PODS: Final = 512


class TakeBack(StrEnum):
    """For what queues have the jobs of others give way."""

    #: No job gives way.
    NOTHING = "nothing"
    #: What they are entitled to, as Muster's own queues do.
    ENTITLED = "entitled"
    #: Their fair share too, as KAI's queues do.
    FAIR_SHARE = "fair-share"


class Muster:
    """One cluster state, one planner."""

    def __init__(
        self,
        fleet: Fleet,
        entitled: Mapping[str, int],
        take_back: TakeBack = TakeBack.NOTHING,
    ) -> None:
        """``entitled``: GPUs of each queue."""
        #: The first promise of each job that got one, by its number.
        self.promised: dict[int, StartPromise] = {}
        self.state = ClusterState("replay", levels=DEFAULT_LEVELS, gate=PLAN_GATE)
        self._now = EPOCH
        self._engine = Engine(self.state, lambda: self._now)
        config = ExtenderConfig(spare_count=0)
        self._orders = _Orders()
        rooms = no_rooms if take_back is TakeBack.NOTHING else self._rooms_of
        parts = LonePlanner.of(self._engine, config, self._release, lambda: 0.0, rooms)
        self._planner, self._worklist = parts.planner, parts.worklist
        self._run_times = parts.run_times
        #: when gangs started that run
        self._began: dict[GangKey, float] = {}
        #: those of them without an estimate
        self._unknown: dict[GangKey, float] = {}
        #: when those were taken to end, by the job that was promised a start meanwhile
        self._expected: defaultdict[int, dict[int, float]] = defaultdict(dict)
        self._next_uid = 0
        self._jobs: dict[GangKey, Submission] = {}
        self._gated: dict[PodUid, PodUpserted] = {}
        self._left: dict[GangKey, int] = {}  # members that are not bound
        self._started: list[Submission] = []
        for host in fleet.hosts:
            self._engine.apply(_node(host))
        for event in _queues(entitled, take_back):
            self._engine.apply(event)

    def submitted(self, one: Submission, now: float) -> None:
        """Show the state a gang and its gated pods."""
        self._now = now + EPOCH
        pods = [self._pod(one, rank) for rank in range(one.job.pods)]
        key, job = _key(one), one.job
        spec = GangSpec(
            key, _NAMESPACE, job.name, "muster",
            min_count=len(pods), size=len(pods), queue=job.tenant,
            submitted_at=job.arrival + EPOCH,
            max_run_time=one.estimate,
        )  # fmt: skip
        self._jobs[key], self._left[key] = one, len(pods)
        self._engine.apply(GangUpserted(spec))
        for pod in pods:
            self._gated[pod.uid] = pod
            self._engine.apply(pod)

    def ended(self, one: Submission, now: float) -> None:
        """Take the pods and the gang away."""
        self._now, key = now + EPOCH, _key(one)
        for uid in self.state.members(key):
            self._engine.apply(PodGone(uid))
        self._engine.apply(GangGone(key))
        del self._jobs[key], self._began[key]
        self._unknown.pop(key, None)

    def give_way(self, now: float) -> Sequence[Submission]:
        """End what the planner ordered, and submit it again."""
        orders = self._orders.take()
        leaving = [self._jobs[key] for key in orders]
        for one in leaving:
            self.ended(one, now)
        for one in leaving:
            self.submitted(one, now)
        for preemptor in orders.values():
            self._worklist.look_again(preemptor)  # as the evictor does
        return leaving

    def latest(self) -> Mapping[GangKey, float]:
        """Return when those that run wrote their last checkpoints."""
        now = self._now - EPOCH
        kept = {key: (now - at) // CHECKPOINT_S * CHECKPOINT_S for key, at in self._began.items()}
        return {key: EPOCH + self._began[key] + done for key, done in kept.items() if done}

    def start(self, now: float) -> Sequence[Submission]:
        """Let the planner plan until nothing can be planned."""
        self._now = now + EPOCH
        self._started = []
        _finish(self._planner.settle())
        for one in self._planner.promises:
            number = self._jobs[one.gang].number
            expected = self._expected[number]
            if number not in self.promised:
                start = one.first_start - EPOCH
                self.promised[number] = StartPromise(start, one.is_firm, expected)
            self._expect(expected)
        return self._started

    def _expect(self, expected: dict[int, float]) -> None:
        """Note when jobs without an estimate are taken to end, but for those that are noted."""
        for key, began in self._unknown.items():
            number = self._jobs[key].number
            view = None if number in expected else self.state.gang(key)
            seconds = None if view is None else self._run_times.of(view)
            if seconds is not None:
                expected[number] = began + seconds

    def next_look(self) -> float:
        """Return when the planner wakes up by itself, at promised starts for one.

        It looks at promises in between, too. Nothing changes between two events of a replay, so
        those looks are left out: there would be one in each minute of months.
        """
        promises = self._planner.promises
        promised = {one.gang: one.start for one in promises if one.start > self._now}
        others = self._worklist.not_before
        times = [*promised.values(), *(others[key] for key in others.keys() - promised.keys())]
        return min((at for at in times if at > self._now), default=math.inf) - EPOCH

    def _rooms_of(self, reporter: DecisionReporter, pace: Pace, turns: QueueTurns) -> RoomMaker:
        return RoomMaker(
            *(self._engine, PendingPods(), self._orders, reporter, pace, self, _POLICIES),
            division=turns,
        )

    def _release(self, uids: list[PodUid]) -> None:
        """Bind every pod of a plan where it was planned."""
        for uid in uids:
            hold = self.state.hold(uid)
            if hold is None:
                raise ReplayError(f"pod {uid.hex()}: released without a hold")
            self._engine.apply(PodReleased(uid))
            self._engine.apply(_bound(self._gated.pop(uid), hold.note(), self._now))
            self._count(self.state.gang_of(uid))

    def _count(self, key: GangKey | None) -> None:
        if key is None:
            raise ReplayError("a pod without a gang was released")
        self._left[key] -= 1
        if not self._left[key]:
            del self._left[key]
            self._started.append(self._jobs[key])
            self._began[key] = self._now - EPOCH
            if self._jobs[key].estimate is None:
                self._unknown[key] = self._now - EPOCH

    def _pod(self, one: Submission, rank: int) -> PodUpserted:
        self._next_uid += 1
        return PodUpserted(
            uid=PodUid(self._next_uid.to_bytes(16, "big")),
            namespace=_NAMESPACE,
            name=f"{one.job.name}-{rank}",
            pod_class=PodClass(((GPU, one.job.gpus_per_pod), ("pods", 1))),
            labels=LabelSet(_NAMESPACE),
            gates=frozenset({PLAN_GATE}),
            gang=_key(one),
            rank=rank,
            created=self._now,
            managed=True,
            owned=True,
        )


class _Orders:
    """Takes eviction orders, which are carried out in the same instant."""

    def __init__(self) -> None:
        self._leaving: dict[GangKey, GangKey] = {}  # for whom

    def take(self) -> dict[GangKey, GangKey]:
        """Return the gangs that give way, once, and for whom."""
        leaving, self._leaving = self._leaving, {}
        return leaving

    def order(self, order: EvictionOrder) -> bool:
        """Note who gives way, unless one of them does already."""
        if any(victim.gang in self._leaving for victim in order.victims):
            return False
        self._leaving |= {victim.gang: order.preemptor for victim in order.victims}
        return True

    def is_served(self, preemptor: GangKey) -> bool:
        """Return whether gangs give way to a gang now."""
        return preemptor in self._leaving.values()

    def protected(self) -> Iterator[GangKey]:
        """Return no gang: no eviction is refused."""
        return iter(())

    def going(self) -> Going:
        """Return those that give way, whole."""
        return dict.fromkeys(self._leaving, ())

    def coming(self) -> Collection[GangKey]:
        """Return the gangs that get their room."""
        return set(self._leaving.values())

    def giving_to(self, gang: GangKey) -> Collection[GangKey]:
        """Return those that give way to a gang."""
        return {victim for victim, preemptor in self._leaving.items() if preemptor == gang}


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run what never waits to its end."""
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise ReplayError("the planner waits, and nothing in virtual time would wake it")


def _queues(entitled: Mapping[str, int], take_back: TakeBack) -> Iterable[QueueUpserted]:
    """Yield one queue for each tenant below the cluster; what one leaves others borrow."""
    dialect, shares, preemption = OWN, None, OWN_PREEMPTION
    if take_back is TakeBack.FAIR_SHARE:
        dialect, shares = KAI, ShareFunction.TWO_PHASES
        preemption = kai_preemption("", "", QueueFindings())
    root = queue_name(dialect, "cluster")
    yield QueueUpserted(whole_cluster(root, shares))
    mean = sum(entitled.values()) / len(entitled)
    for name, gpus in entitled.items():
        spec = QueueSpec(
            queue_name(dialect, name),
            root,
            {Cell("", GPU): Quota(gpus)},
            weight=max(1, round(WEIGHT_ONE * gpus / mean)),
            is_whole=True,
            preemption=preemption,
        )
        yield QueueUpserted(spec, (Spelling("", name),))


def _bound(pod: PodUpserted, note: PlanNote, now: float) -> PodUpserted:
    return replace(pod, node=note.node, gates=frozenset(), started=now, plan=note)


def _key(one: Submission) -> GangKey:
    return GangKey(f"muster/{_NAMESPACE}/{one.job.name}")


def _node(host: Host) -> NodeUpserted:
    return NodeUpserted(
        name=host.name,
        labels={ZONE: host.zone, BLOCK: host.block, RACK: host.rack, HOST: host.name},
        allocatable={"cpu": _HOST_MILLICPU, GPU: host.gpus, "pods": _HOST_PODS},
    )
