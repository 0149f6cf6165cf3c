"""Cases put to the solver, and its answers counted and checked from outside."""

import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from loadtest.benches.room.cases import GPUS, MIN_RUN_S, NOW, QUEUES, Asked, Job, RoomCase
from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.events import GangUpserted, NodeUpserted, PodUpserted, QueueUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.resumable import run
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, RoomQuestion, room_for
from muster.decisions.tenancy import GangTerms
from muster.kube.names import PLAN_GATE
from muster.placement.question import Question
from muster.placement.victims.costs import CostOrder

RACK: Final = "muster.dev/rack"
HOST: Final = "kubernetes.io/hostname"
_GPU: Final = "nvidia.com/gpu"
ASKED: Final = GangKey("muster/bench/asked")
POLICY: Final = PreemptionPolicy(preempt_min_run=MIN_RUN_S, reclaim_min_run=MIN_RUN_S)


@dataclass(frozen=True, slots=True)
class Made:
    """What the solver answered."""

    #: (priority, waste, gangs that end, device-seconds, pods that end); ``None``: nobody.
    cost: tuple[int, ...] | None
    #: Gangs that lose members, by name, with how many.
    gone: dict[str, int]
    proven: bool
    certain: bool
    #: What is wrong with it: an invalid place, a partial gang, a queue below its entitlement.
    invalid: int
    partial: int
    below: int
    seconds: float


def answered(case: RoomCase, order: CostOrder | None = None) -> Made:
    """Put a case to the solver."""
    state = state_of(case)
    snapshot = state.snapshot()
    _ = snapshot.topology  # built when nodes change
    began = time.perf_counter()
    answer = run(room_for(snapshot, state.charges, question_of(case, ASKED, order)))
    seconds = time.perf_counter() - began
    if isinstance(answer, NoRoom):
        return Made(None, {}, proven=False, certain=answer.certain, invalid=0, partial=0, below=0,
                    seconds=seconds)  # fmt: skip
    gone = _gone(answer)
    return Made(
        cost=CostOrder().key(answer.cost),
        gone=gone,
        proven=answer.proven,
        certain=True,
        invalid=len(verify(snapshot.overlay(without_pods=answer.rows), answer.plan)),
        partial=partial_gangs(case, gone),
        below=below_entitlement(case, gone),
        seconds=seconds,
    )


def question_of(case: RoomCase, gang: GangKey, order: CostOrder | None = None) -> RoomQuestion:
    """Return the question about a gang of a case."""
    terms = {
        key_of(job.name): GangTerms(job.checkpointed, is_protected=job.name in case.protected)
        for job in case.jobs
    }
    return RoomQuestion(Question(gang, now=NOW), order=order or CostOrder(), terms=terms)


def _gone(answer: RoomAnswer) -> dict[str, int]:
    if not isinstance(answer, RoomPlan):
        return {}
    return {victim.gang.rpartition("/")[2]: len(victim.rows) for victim in answer.victims}


def partial_gangs(case: RoomCase, gone: dict[str, int]) -> int:
    """Return how many gangs keep members and not their minimum."""
    left = {job.name: len(job.hosts) - gone.get(job.name, 0) for job in case.jobs}
    return sum(0 < left[job.name] < job.minimum for job in case.jobs)


def below_entitlement(case: RoomCase, gone: dict[str, int]) -> int:
    """Return how many other queues lose members and are below what they are entitled to then."""
    taken: Counter[str] = Counter()
    for job in case.jobs:
        taken[job.queue] += job.gpus * gone.get(job.name, 0)
    return sum(
        taken[queue] > 0 and case.used(queue) - taken[queue] < entitled
        for queue, entitled in case.entitled.items()
        if queue != case.asked.queue
    )


def key_of(name: str) -> GangKey:
    """Return the key of a gang of a case."""
    return GangKey(f"muster/bench/{name}")


# --- the cluster of a case ------------------------------------------------------------------


def state_of(case: RoomCase) -> ClusterState:
    """Return the cluster of a case."""
    state = ClusterState("bench", levels=(RACK, HOST), gate=PLAN_GATE)
    for number, rack in enumerate(case.racks):
        labels = {RACK: f"r{rack}", HOST: f"h{number}"}
        room = {"cpu": 256_000, "pods": 110, _GPU: GPUS}
        state.apply(NodeUpserted(f"h{number}", labels, room), now=NOW)
    put_queues(state, case)
    for job in case.jobs:
        for event in running(job):
            state.apply(event, now=NOW)
    for waiting in asked_events(case.asked, "asked"):
        state.apply(waiting, now=NOW)
    return state


def put_queues(state: ClusterState, case: RoomCase) -> None:
    """Give a cluster the queues of a case."""
    root = QueueName("muster/cluster")
    state.apply(QueueUpserted(QueueSpec(root, is_whole=True, is_cluster=True)), now=NOW)
    for queue in QUEUES:
        quota = Quota(case.entitled[queue], limit=case.limits[queue])
        name, quotas = QueueName(f"muster/{queue}"), {Cell("", _GPU): quota}
        spec = QueueSpec(name, root, quotas, preemption=POLICY)
        state.apply(QueueUpserted(spec, (Spelling("", queue),)), now=NOW)


def running(job: Job) -> list[GangUpserted | PodUpserted]:
    """Return the events of a gang that runs."""
    spec = GangSpec(
        key_of(job.name), "bench", job.name, "muster",
        min_count=job.minimum, size=len(job.hosts), queue=job.queue, submitted_at=job.started,
    )  # fmt: skip
    pods = [
        _pod(job.name, rank, job.gpus, job.priority, node=f"h{host}", started=job.started)
        for rank, host in enumerate(job.hosts)
    ]
    return [GangUpserted(spec), *pods]


def asked_events(asked: Asked, name: str) -> list[GangUpserted | PodUpserted]:
    """Return the events of a gang that waits."""
    spec = GangSpec(
        key_of(name), "bench", name, "muster",
        min_count=asked.members, size=asked.members, queue=asked.queue, submitted_at=NOW,
        required_level=RACK if asked.in_rack else None,
    )  # fmt: skip
    pods = [_pod(name, rank, asked.gpus, asked.priority) for rank in range(asked.members)]
    return [GangUpserted(spec), *pods]


def _pod(
    gang: str, rank: int, gpus: int, priority: int, node: str | None = None, started: float = NOW
) -> PodUpserted:
    kind = PodClass((("cpu", 1000), (_GPU, gpus), ("pods", 1)))
    name = f"{gang}-{rank}"
    return PodUpserted(
        uid=PodUid(name.encode().ljust(16, b".")[-16:]),
        namespace="bench",
        name=name,
        pod_class=kind,
        labels=LabelSet("bench"),
        node=node,
        gates=frozenset() if node else frozenset({PLAN_GATE}),
        gang=key_of(gang),
        rank=rank,
        priority=priority,
        managed=True,
        owned=True,
        created=started,
        started=started if node else 0.0,
    )
