"""Ray on Kubernetes (KubeRay): the head and the workers of a RayCluster are one gang.

A RayJob and a RayService make RayClusters, one per attempt or upgrade, and pass their
labels and annotations on to them (ray-operator v1.4, controllers/ray/rayjob_controller.go,
rayservice_controller.go); so only the RayCluster is read, and each attempt is a gang of its
own. Pods carry (controllers/ray/utils/constant.go, common/pod.go):

- ``ray.io/cluster``: the RayCluster, and ``ray.io/group``: the role (``headgroup``, or the
  worker group's name);
- ``ray.io/node-type``: ``head`` and ``worker`` are members; a job that cleans up Redis is not.

**The minimum** is the head and what the operator keeps up of every worker group (replicas
within their bounds); with ``enableInTreeAutoscaling`` it is the head and each group's
``minReplicas``, and Ray's autoscaler adds the rest as it is needed: late members, placed
near the others. These are also the minima KubeRay itself gives to batch schedulers
(controllers/ray/batchscheduler/volcano). A replica of ``numOfHosts`` hosts counts with all
of its hosts.
"""

from typing import Final

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import MadePods, Member, PodTemplate, Watched, created, gang_key
from muster.workloads.keys.owners import is_service
from muster.workloads.keys.templateparts import TemplatePart, minimum, whole
from muster.workloads.keys.userkeys import MAX_MEMBERS

CLUSTER: Final = "ray.io/cluster"
NODE_TYPE: Final = "ray.io/node-type"
WORKER_GROUP: Final = "ray.io/group"
HEAD_GROUP: Final = "headgroup"  # utils.RayNodeHeadGroupLabelValue
_MEMBERS: Final = ("head", "worker")  # node types
_UNBOUNDED: Final = 2**31 - 1  # the CRD's default of maxReplicas: no bound


class HeadGroup(wire.Wire, frozen=True):
    """The one head."""

    template: PodTemplate = PodTemplate()


class WorkerGroup(wire.Wire, frozen=True):
    """Workers of one sort; the CRD fills absent numbers in."""

    group_name: str = ""
    replicas: int | None = None
    min_replicas: int = 0
    max_replicas: int = _UNBOUNDED
    num_of_hosts: int = 1
    suspend: bool = False
    template: PodTemplate = PodTemplate()

    @property
    def hosts(self) -> int:
        """Pods of one replica."""
        return max(self.num_of_hosts, 1)

    def desired(self) -> int:
        """Return the replicas that the operator keeps up (utils.GetWorkerGroupDesiredReplicas)."""
        if self.suspend:
            return 0
        wanted = self.min_replicas if self.replicas is None else self.replicas
        return max(min(max(wanted, self.min_replicas), self.max_replicas), 0)


class RayClusterSpec(wire.Wire, frozen=True):
    """What Muster reads of a RayCluster's spec."""

    suspend: bool = False
    enable_in_tree_autoscaling: bool = False
    head_group_spec: HeadGroup = HeadGroup()
    worker_group_specs: tuple[WorkerGroup, ...] = ()


class RayCluster(wire.Wire, frozen=True):
    """ray.io/v1 RayCluster."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: RayClusterSpec = RayClusterSpec()


def spec(cluster: RayCluster) -> GangSpec | None:
    """Return the gang of a RayCluster, ``None`` while it is suspended and has no pods."""
    if cluster.spec.suspend:
        return None
    meta, elastic = cluster.metadata, cluster.spec.enable_in_tree_autoscaling
    parts = _parts(cluster.spec)
    plain = GangSpec(
        key=gang_key(RayClusters.name, meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        dialect=RayClusters.name,
        min_count=sum(part.at_start for part in parts),
        size=sum(part.size for part in parts),
        max_count=_most(cluster.spec) if elastic else None,
        submitted_at=created(meta),
        serves=is_service(meta),
    )
    return whole(plain, meta, parts)


def pods(cluster: RayCluster) -> tuple[MadePods, ...]:
    """Return the head and the pods of all worker groups."""
    head, *workers = _parts(cluster.spec)
    return (
        MadePods(head.role, head.size, ("spec", "headGroupSpec", "template")),
        *(
            MadePods(part.role, part.size, ("spec", "workerGroupSpecs", number, "template"))
            for number, part in enumerate(workers)
        ),
    )


def _parts(spec: RayClusterSpec) -> list[TemplatePart]:
    """Return the head's part, then one for each worker group."""
    head = TemplatePart(HEAD_GROUP, spec.head_group_spec.template.metadata, 1, 1)
    elastic = spec.enable_in_tree_autoscaling
    return [head, *(_part(group, elastic=elastic) for group in spec.worker_group_specs)]


def _part(group: WorkerGroup, *, elastic: bool) -> TemplatePart:
    """Return what one worker group adds to the gang."""
    meta, desired = group.template.metadata, group.desired()
    needed = min(max(group.min_replicas, 0), desired) if elastic else desired
    at_start = min(minimum(meta, desired * group.hosts), needed * group.hosts)
    return TemplatePart(group.group_name, meta, desired * group.hosts, at_start)


def _most(spec: RayClusterSpec) -> int | None:
    """Return the members of the largest cluster, ``None`` when a group has no bound."""
    groups = [group for group in spec.worker_group_specs if not group.suspend]
    most = 1 + sum(max(group.max_replicas, group.desired()) * group.hosts for group in groups)
    return most if most <= MAX_MEMBERS else None


class RayClusters:
    """The dialect; stateless."""

    name = "raycluster"
    markers = (CLUSTER,)
    watched = (Watched("ray.io", "v1", "rayclusters", RayCluster, spec, pods=pods),)

    def member(self, pod: wire.Pod) -> Member | None:
        """Return the RayCluster that the operator's labels name."""
        labels = pod.metadata.labels
        cluster = labels.get(CLUSTER, "")
        if not cluster or labels.get(NODE_TYPE) not in _MEMBERS:
            return None
        key = gang_key(self.name, pod.metadata.namespace, cluster)
        return Member(key, labels.get(WORKER_GROUP, ""))

    def spec_from_pod(self, _pod: wire.Pod) -> GangSpec | None:
        """Return ``None``: the RayCluster says it."""
        return None
