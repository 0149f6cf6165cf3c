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
(anti-)affinity on every pod, which is honoured as any other; nothing is added to it.

How many groups there are does not matter: the set describes one, and each that has pods
copies it (``muster.workloads.gangbook``). A group that is restarted keeps its name: while its old
pods end its new ones gather, and are placed as a whole.
"""

from collections.abc import Iterator
from typing import Final

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import (
    NO_RANK,
    MadePods,
    Member,
    PodTemplate,
    Watched,
    created,
    gang_key,
)
from muster.workloads.keys.ranks import index
from muster.workloads.keys.templateparts import TemplatePart, minimum, whole

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


class LeaderWorkerSetSpec(wire.Wire, frozen=True):
    """What Muster reads of a LeaderWorkerSet's spec."""

    replicas: int = 1
    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: str = ""


class LeaderWorkerSet(wire.Wire, frozen=True):
    """leaderworkerset.x-k8s.io/v1 LeaderWorkerSet."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


def spec(found: LeaderWorkerSet) -> GangSpec | None:
    """Return what every group of a set asks for, ``None`` for groups without pods."""
    meta, template = found.metadata, found.spec.leader_worker_template
    if template.size < 1:
        return None
    leader = (template.leader_template or template.worker_template).metadata
    workers, count = template.worker_template.metadata, template.size - 1
    staged = found.spec.startup_policy == LEADER_READY or EXCLUSIVE in meta.annotations
    at_start = 0 if staged else minimum(workers, count)
    plain = GangSpec(
        key=_any_group(meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        dialect=LeaderWorkerSets.name,
        min_count=1 + at_start,
        size=template.size,
        submitted_at=created(meta),
        serves=True,
    )
    return whole(
        plain,
        meta,
        (TemplatePart(LEADER, leader, 1, 1), TemplatePart(WORKER, workers, count, at_start)),
    )


def pods(found: LeaderWorkerSet) -> tuple[MadePods, ...]:
    """Return the pods of one group."""
    template, at = found.spec.leader_worker_template, ("spec", "leaderWorkerTemplate")
    leader = "workerTemplate" if template.leader_template is None else "leaderTemplate"
    return (
        MadePods(LEADER, min(max(template.size, 0), 1), (*at, leader)),
        MadePods(WORKER, max(template.size - 1, 0), (*at, "workerTemplate")),
    )


def groups(found: LeaderWorkerSet) -> int:
    """Return how many groups there are."""
    return max(found.spec.replicas, 0)


def _any_group(namespace: str, name: str) -> GangKey:
    """Return the key of the description that all groups copy; ``:`` cannot occur in a name."""
    return gang_key(LeaderWorkerSets.name, namespace, f"{name}:group")


class LeaderWorkerSets:
    """The dialect; stateless."""

    name = "leaderworkerset"
    markers = (SET_NAME,)
    watched = (
        Watched(
            "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", LeaderWorkerSet, spec,
            pods=pods, gangs=groups,
        ),
    )  # fmt: skip

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the group that the labels name, or the pod's own name does."""
        meta = pod.metadata
        owner = meta.labels.get(SET_NAME, "")
        places = _places(meta, owner)
        if not owner or not places:
            return None
        group, worker = places
        key = gang_key(self.name, meta.namespace, f"{owner}-{group}")
        role = WORKER if worker else LEADER
        return Member(key, role, worker, template=_any_group(meta.namespace, owner))

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
