"""LeaderWorkerSets (leaderworkerset.x-k8s.io/v1): each group of a leader and its workers is a gang.

A set makes ``replicas`` equal groups that serve independently of each other, so one set is
many gangs, named like their leaders (``set-0``, ``set-1``). Pods carry (lws v0.7,
api/leaderworkerset/v1/leaderworkerset_types.go, pkg/webhooks/pod_webhook.go):

- ``leaderworkerset.sigs.k8s.io/name`` and ``…/group-index``: set and group. LWS's own
  webhook writes a leader's index from the leader's name; so does Muster where it is asked
  first;
- ``…/worker-index``: the rank; 0 is the leader.

**When workers come later** only the leader can be waited for, and the workers follow as
late members: with ``startupPolicy: LeaderReady`` they are created when the leader runs,
and with ``leaderworkerset.sigs.k8s.io/exclusive-topology`` when it has its node
(pkg/controllers/pod_controller.go).

**Topology.** For exclusive topology, of groups and of subgroups, LWS writes required pod
(anti-)affinity on every pod, which is honoured as any other; nothing is added to it. A
rolling update may have more groups than ``replicas``: those of ``maxSurge`` are described
too. A group that is restarted keeps its name, and its new pods join it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cluster.gangs import GangSpec
from cluster.ids import GangKey
from kube import wire
from workloads.dialect import NO_RANK, Member, PodTemplate, Watched, created, gang_key
from workloads.parts import Part, minimum, whole
from workloads.ranks import index
from workloads.userkeys import MAX_MEMBERS

SET_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
EXCLUSIVE: Final = "leaderworkerset.sigs.k8s.io/exclusive-topology"
LEADER_READY: Final = "LeaderReady"
LEADER: Final = "leader"
WORKER: Final = "worker"


class LeaderWorkerTemplate(wire.Wire, frozen=True):
    """What one group is made of; without a leader template the workers' makes the leader."""

    leader_template: PodTemplate | None = None
    worker_template: PodTemplate = PodTemplate()
    size: int = 1


class RollingUpdate(wire.Wire, frozen=True):
    """How many groups may exist beyond ``replicas`` during an update."""

    max_surge: int | str = 0


class RolloutStrategy(wire.Wire, frozen=True):
    """What Muster reads of the roll-out."""

    rolling_update_configuration: RollingUpdate = RollingUpdate()


class LeaderWorkerSetSpec(wire.Wire, frozen=True):
    """What Muster reads of a LeaderWorkerSet's spec."""

    replicas: int = 1
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: str = ""
    rollout_strategy: RolloutStrategy = RolloutStrategy()


class LeaderWorkerSet(wire.Wire, frozen=True):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSet."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


def specs(found: LeaderWorkerSet) -> tuple[GangSpec, ...]:
    """Return one gang per group; they differ in nothing but their names."""
    template, groups = found.spec.leader_worker_template, _groups(found.spec)
    if template.size < 1 or groups * template.size > MAX_MEMBERS:
        return ()
    first = _group(found)
    return tuple(_named(first, found.metadata, number) for number in range(groups))


def _group(found: LeaderWorkerSet) -> GangSpec:
    """Return the gang of the first group."""
    meta, template = found.metadata, found.spec.leader_worker_template
    leader = (template.leader_template or template.worker_template).metadata
    workers = template.worker_template.metadata
    staged = found.spec.startup_policy == LEADER_READY or EXCLUSIVE in meta.annotations
    at_start = 0 if staged else minimum(workers, template.size - 1)
    parts = (Part(LEADER, leader, 1, 1), Part(WORKER, workers, template.size - 1, at_start))
    plain = GangSpec(
        key=_key(meta.namespace, meta.name, 0),
        namespace=meta.namespace,
        name=meta.name,
        dialect=LeaderWorkerSets.name,
        min_count=1 + at_start,
        size=template.size,
        submitted_at=created(meta),
    )
    return whole(plain, meta, parts)


def _named(group: GangSpec, meta: wire.ObjectMeta, number: int) -> GangSpec:
    key = _key(meta.namespace, meta.name, number)
    return replace(group, key=key, name=f"{meta.name}-{number}")


def _groups(spec: LeaderWorkerSetSpec) -> int:
    """Return how many groups there may be at one time, those of a roll-out included."""
    replicas, surge = max(spec.replicas, 0), spec.rollout_strategy.rolling_update_configuration
    return replicas + max(_surge(surge.max_surge, replicas), 0)


def _surge(surge: int | str, replicas: int) -> int:
    """Return ``maxSurge`` as a count; a percentage is taken of the replicas and rounded up."""
    if isinstance(surge, int):
        return surge
    digits = surge.removesuffix("%")
    percent = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 4 else 0  # noqa: PLR2004 - "100"
    return -(-replicas * percent // 100)


def _key(namespace: str, name: str, group: int) -> GangKey:
    return gang_key(LeaderWorkerSets.name, namespace, f"{name}-{group}")


class LeaderWorkerSets:
    """The dialect; stateless."""

    name = "leaderworkerset"
    markers = (SET_NAME,)
    watched = (
        Watched("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", LeaderWorkerSet, specs),
    )

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the group that the labels name, or the pod's own name does."""
        meta = pod.metadata
        owner = meta.labels.get(SET_NAME, "")
        places = _places(meta, owner)
        if not owner or not places:
            return None
        group, worker = places
        key = _key(meta.namespace, owner, group)
        return Member(key, WORKER if worker else LEADER, worker)

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the LeaderWorkerSet says it."""
        return None


def _places(meta: wire.ObjectMeta, owner: str) -> tuple[int, int] | None:
    """Return group and worker number: from the labels, else from ``set-GROUP[-WORKER]``."""
    named = list(_ordinals(meta.name.removeprefix(f"{owner}-")))
    group, worker = index(meta, GROUP_INDEX), index(meta, WORKER_INDEX)
    if group == NO_RANK and named:
        group = named[0]
    if worker == NO_RANK:
        worker = named[1] if len(named) > 1 else 0
    return None if group == NO_RANK else (group, worker)


def _ordinals(text: str) -> Iterator[int]:
    """Yield the numbers of ``1-2``; nothing for any other text."""
    parts = text.split("-")
    if len(parts) <= 2 and all(p.isascii() and p.isdigit() and len(p) < 10 for p in parts):  # noqa: PLR2004 - group and worker; below 2**31
        yield from (int(part) for part in parts)
