"""Cases put to the planner, and its plans counted as the oracle counts."""

from dataclasses import dataclass
from itertools import pairwise

from loadtest.benches.topology.cases import HOST_MILLICPU, Case, Host
from loadtest.testbed.oracles.placement.plans import verify
from muster.cluster.events import GangUpserted, NodeUpserted, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.specs.podconstraints import LabelSet, PodClass
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question

_GPU = "nvidia.com/gpu"
_KEY = GangKey("bench/bench/gang")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the planner did."""

    #: Domains used; ``None``: there was no plan.
    used: tuple[int, ...] | None
    crossings: tuple[int, ...]
    proven: bool
    #: What is wrong with the plan.
    errors: tuple[str, ...]


def answer(case: Case) -> Answer:
    """Plan a case and count."""
    snapshot = _state(case).snapshot()
    decision = plan_now(snapshot, Question(_KEY))
    if not isinstance(decision, Plan):
        return Answer(None, (), False, ())
    hosts = _hosts(case, snapshot, decision)
    domains = case.domains()
    paths = [[domains[level][h] for h in hosts] for level in range(len(case.levels))]
    return Answer(
        used=tuple(len(set(paths[level])) for level in case.order()),
        crossings=tuple(_ring(path) for path in paths),
        proven=decision.proven,
        errors=tuple(verify(snapshot, decision)),
    )


def _ring(path: list[str]) -> int:
    """Count neighbours in different domains; the last and the first are neighbours."""
    return sum(a != b for a, b in pairwise([*path, path[0]]))


def _hosts(case: Case, snapshot: Snapshot, plan: Plan) -> list[int]:
    index = {host.name: i for i, host in enumerate(case.hosts)}
    return [index[snapshot.nodes.name(int(row))] for row in plan.nodes]


def _state(case: Case) -> ClusterState:
    state = ClusterState("bench", levels=case.levels, gate=PLAN_GATE)
    for host in case.hosts:
        state.apply(_node(case, host), now=0.0)
        taken = (host.gpus - host.free_gpus, HOST_MILLICPU - host.free_millicpu)
        if any(taken):
            state.apply(_pod(_class(*taken), f"run-{host.name}", node=host.name), now=0.0)
    state.apply(GangUpserted(_spec(case)), now=0.0)
    rank = 0
    for kind in case.kinds:
        for _ in range(kind.count):
            pod = _pod(_class(kind.gpus, kind.millicpu), f"member-{rank}", rank=rank)
            state.apply(pod, now=0.0)
            rank += 1
    return state


def _spec(case: Case) -> GangSpec:
    def key(level: int | None) -> str | None:
        return None if level is None else case.levels[level]

    level, size = case.slices[-1] if case.slices else (None, None)
    return GangSpec(
        _KEY, "bench", "gang", "bench",
        min_count=case.members,
        size=case.members,
        required_level=key(case.required),
        preferred_level=key(case.preferred),
        slice_size=size,
        slice_level=key(level),
        wider_slices=tuple((case.levels[wide], members) for wide, members in case.slices[:-1]),
    )  # fmt: skip


def _node(case: Case, host: Host) -> NodeUpserted:
    named = zip(case.levels, (*host.labels, host.name), strict=True)
    return NodeUpserted(
        name=host.name,
        labels={level: label for level, label in named if label is not None},
        allocatable={"cpu": HOST_MILLICPU, _GPU: host.gpus, "pods": 110},
    )


def _class(gpus: int, millicpu: int) -> PodClass:
    asked = {"cpu": millicpu, _GPU: gpus, "pods": 1}
    return PodClass(tuple((name, amount) for name, amount in sorted(asked.items()) if amount))


def _pod(kind: PodClass, name: str, *, rank: int = -1, node: str | None = None) -> PodUpserted:
    member = node is None
    return PodUpserted(
        uid=PodUid(name.encode().ljust(16, b".")[:16]),
        namespace="bench",
        name=name,
        pod_class=kind,
        labels=LabelSet("bench"),
        node=node,
        gates=frozenset({PLAN_GATE}) if member else frozenset(),
        gang=_KEY if member else None,
        rank=rank,
        managed=member,
    )
