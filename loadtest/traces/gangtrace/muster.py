"""Muster's side: the code that plans in the extender, fed with the events that it would see.

::

    submitted   GangUpserted, PodUpserted of each member (gated)
    placed      decisions.decide on a snapshot ─► assignments ─► PlanHeld
                ─► PodReleased and PodUpserted (bound to the node of the plan) of each
    ended       PodGone of each member, GangGone

Only what lies between the parts (API server, kube-scheduler) takes no time here. A head
that was searched for in vain is dismissed by the sum of what is free, as in
``extender.planning.planner``. Spares are not asked for: they are of use between release and
binding. Every ``check_every``-th plan is verified pod by pod and the whole model validated.
"""

from collections.abc import Sequence
from typing import Final

from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.oracles.placement.plans import verify
from loadtest.traces.fleet import Fleet, Host
from loadtest.traces.gangtrace.replay import Hosts
from loadtest.traces.trace import Job
from muster.cluster.events import (
    Assignment,
    GangGone,
    GangUpserted,
    NodeUpserted,
    PlanHeld,
    PlanNote,
    PodGone,
    PodReleased,
    PodUpserted,
)
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.resumable import run
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.decisions.answer import decide
from muster.decisions.assign import assignments
from muster.kube.names import BLOCK, DEFAULT_LEVELS, HOST, PLAN_GATE, RACK, ZONE
from muster.placement.decision import Plan, Reject
from muster.placement.question import Question
from muster.queueing.totals import FreeTotals

_EPOCH: Final = 1.5e9
"""Time 0 of the replay in seconds since the epoch (2017); for the model 0 means unknown."""
_NAMESPACE: Final = "trace"
_HOLD_S: Final = 60.0
_HOST_MILLICPU: Final = 192_000
_HOST_PODS: Final = 110


class ReplayError(Exception):
    """The planner refused for ever what fits the fleet, or made a plan that is none."""


class Muster:
    """One cluster state, one planner."""

    def __init__(self, fleet: Fleet, *, check_every: int = 0) -> None:
        self.state = ClusterState("trace", levels=DEFAULT_LEVELS, gate=PLAN_GATE)
        self.checked = 0
        self._check_every = check_every
        self._plans = 0
        self._next_uid = 0
        self._members: dict[str, list[PodUpserted]] = {}
        self._searched = ""
        self._hosts = {host.name: i for i, host in enumerate(fleet.hosts)}
        for host in fleet.hosts:
            self.state.apply(_node(host), now=0.0)

    def submitted(self, job: Job, now: float) -> None:
        """Show the state a gang and its gated pods."""
        key, now = _key(job), now + _EPOCH
        spec = GangSpec(
            key, _NAMESPACE, job.name, "trace",
            min_count=job.pods, size=job.pods, queue=job.tenant, submitted_at=now,
        )  # fmt: skip
        self.state.apply(GangUpserted(spec), now=now)
        self._members[job.name] = [self._pod(job, rank, now) for rank in range(job.pods)]
        for pod in self._members[job.name]:
            self.state.apply(pod, now=now)

    def place(self, job: Job, now: float) -> Hosts | None:
        """Plan the gang; hold, release and bind the plan."""
        snapshot, key, now = self.state.snapshot(), _key(job), now + _EPOCH
        if self._searched == job.name and not self._may_fit(key):
            return None
        question = Question(gang=key, now=now, window_s=0.0, spare_count=0)
        decision = run(decide(snapshot, question))
        if isinstance(decision, Reject):
            raise ReplayError(f"job {job.name} of {job.gpus} GPUs: {decision.message}")
        if not isinstance(decision, Plan):
            self._searched = job.name
            return None
        self._plans += 1
        check = self._check_every and self._plans % self._check_every == 0
        if check and (errors := verify(snapshot, decision)):
            raise ReplayError(f"job {job.name}: {'; '.join(errors)}")
        chosen = run(assignments(snapshot, decision))
        self._carry_out(job, chosen, decision.generation, now)
        if check:
            self.state.validate()
            self.checked += 1
        return tuple(self._hosts[each.node] for each in chosen)

    def ended(self, job: Job, now: float) -> None:
        """Take the pods and the gang away."""
        for pod in self._members.pop(job.name):
            self.state.apply(PodGone(pod.uid), now=now + _EPOCH)
        self.state.apply(GangGone(_key(job)), now=now + _EPOCH)

    def _may_fit(self, key: GangKey) -> bool:
        view = self.state.gang(key)
        return view is not None and FreeTotals(self.state.snapshot()).may_fit(view)

    def _carry_out(
        self, job: Job, chosen: Sequence[Assignment], generation: int, now: float
    ) -> None:
        plan_id = f"plan-{self._plans}"
        held = PlanHeld(_key(job), plan_id, tuple(chosen), now + _HOLD_S, generation)
        self.state.apply(held, now=now)
        pods = {pod.uid: pod for pod in self._members[job.name]}
        for each in chosen:
            self.state.apply(PodReleased(each.uid), now=now)
        for each in chosen:
            note = PlanNote(plan_id, each.node, rank=each.rank, generation=generation)
            self.state.apply(_bound(pods[each.uid], note, now), now=now)

    def _pod(self, job: Job, rank: int, now: float) -> PodUpserted:
        self._next_uid += 1
        return PodUpserted(
            uid=PodUid(self._next_uid.to_bytes(16, "big")),
            namespace=_NAMESPACE,
            name=f"{job.name}-{rank}",
            pod_class=PodClass(((GPU, job.gpus_per_pod), ("pods", 1))),
            labels=LabelSet(_NAMESPACE),
            gates=frozenset({PLAN_GATE}),
            gang=_key(job),
            rank=rank,
            created=now,
            managed=True,
            owned=True,
        )


def _bound(pod: PodUpserted, note: PlanNote, now: float) -> PodUpserted:
    return PodUpserted(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        pod_class=pod.pod_class,
        labels=pod.labels,
        node=note.node,
        gang=pod.gang,
        rank=pod.rank,
        created=pod.created,
        started=now,
        managed=True,
        owned=True,
        plan=note,
    )


def _key(job: Job) -> GangKey:
    return GangKey(f"trace/{_NAMESPACE}/{job.name}")


def _node(host: Host) -> NodeUpserted:
    return NodeUpserted(
        name=host.name,
        labels={ZONE: host.zone, BLOCK: host.block, RACK: host.rack, HOST: host.name},
        allocatable={"cpu": _HOST_MILLICPU, GPU: host.gpus, "pods": _HOST_PODS},
    )
