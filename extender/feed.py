"""From wire objects to events: which gang, managed or not, which volumes; then the engine.

One method per kind and direction. Each is total: an object that cannot be read is counted
and logged, and the rest of the cluster goes on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cluster.constraints import PodClass
from cluster.events import GangGone, GangUpserted, PodGone
from cluster.gangs import GangSpec
from cluster.holds import HoldState
from cluster.ids import GangKey, PodUid
from extender.engine import Engine
from extender.pending import PendingPods, pending, suffers_from_pin
from extender.rejudge import Rejudging
from extender.report import Reporter
from extender.specbook import SpecBook
from kube import names, translate, wire
from kube.volumes import VolumeIndex
from workloads.dialect import Member
from workloads.managed import Policy, takes
from workloads.objects import GangObjects
from workloads.registry import SINGLE, member_or_single, spec_from_pod

Claim = tuple[str, str]  # namespace, name
Lost = Callable[[GangKey, str], None]
# Copied from the node (kube-apiserver, plugin/pkg/admission/podtopologylabels).
_ADDED_BY_BINDING = frozenset({"topology.kubernetes.io/zone", "topology.kubernetes.io/region"})


@dataclass(slots=True)
class _Claimants:
    """Pending managed pods by the volume claims they use: they are read again when one binds."""

    _pods: dict[PodUid, wire.Pod] = field(default_factory=dict)
    _users: dict[Claim, set[PodUid]] = field(default_factory=dict)

    def put(self, uid: PodUid, pod: wire.Pod) -> None:
        claims = _claims(pod)
        if claims:
            self._pods[uid] = pod
            for claim in claims:
                self._users.setdefault(claim, set()).add(uid)

    def drop(self, uid: PodUid) -> None:
        pod = self._pods.pop(uid, None)
        for claim in () if pod is None else _claims(pod):
            users = self._users.get(claim, set())
            users.discard(uid)
            if not users:
                self._users.pop(claim, None)

    def of(self, claim: Claim) -> list[wire.Pod]:
        return [self._pods[uid] for uid in self._users.get(claim, ())]


def _said(pod: wire.Pod) -> int:
    """Return a digest of everything that dialects read of a pod.

    Our own plan is not, nor the labels that the API server adds with the binding.
    """
    meta = pod.metadata
    notes = frozenset(item for item in meta.annotations.items() if item[0] != names.PLAN)
    labels = frozenset(item for item in meta.labels.items() if item[0] not in _ADDED_BY_BINDING)
    owners = tuple(owner.uid for owner in meta.owner_references)
    return hash((labels, notes, owners))


def _claims(pod: wire.Pod) -> set[Claim]:
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return {(pod.metadata.namespace, s.claim_name) for s in sources if s is not None}


class Feed:
    """Applies objects to the engine and keeps what releases and answers need beside it."""

    def __init__(
        self, engine: Engine, policy: Policy, pods: PendingPods, reporter: Reporter
    ) -> None:
        self._engine = engine
        self._policy = policy
        self._pending = pods
        self._reporter = reporter
        self._translator = translate.Translator()
        self._volumes = VolumeIndex()
        self._claimants = _Claimants()
        self._objects = GangObjects()
        self._specs = SpecBook()
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self.lost: Lost = lambda _gang, _node: None
        """Told of a gang and of the node that a bound member with a controller has left."""
        self.rejudging = Rejudging()

    def is_managed(self, pod: wire.Pod) -> bool:
        """Whether Muster plans this pod; for pods that the watch may not have shown yet."""
        return self._policy.is_managed(pod, self._namespaces.get(pod.metadata.namespace, {}))

    def namespace(self, namespace: wire.Namespace) -> None:
        """Take a namespace over. If it was opened or closed to Muster its pods are due again."""
        name, labels = namespace.metadata.name, namespace.metadata.labels
        if takes(labels) != takes(self._namespaces.get(name, {})):
            self.rejudging.due(name)
        self._namespaces[name] = labels
        self._engine.apply(translate.namespace_event(namespace))

    def namespace_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a namespace."""
        self._namespaces.pop(meta.name, None)
        self.rejudging.done(meta.name)
        self._engine.apply(translate.namespace_gone(meta))

    def node(self, node: wire.Node) -> None:
        """Take a node over."""
        event, problems = translate.read_node(node)
        for problem in problems:
            self._reporter.unreadable("nodes", problem)
        self._engine.apply(event)

    def node_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a node."""
        self._engine.apply(translate.node_gone(meta))

    def claim(self, claim: wire.PersistentVolumeClaim) -> None:
        """Take a claim over, and read the pods again that wait for it to be bound."""
        self._volumes.claim_upserted(claim)
        self._read_again((claim.metadata.namespace, claim.metadata.name))

    def claim_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a claim."""
        self._volumes.claim_gone(meta.namespace, meta.name)
        self._read_again((meta.namespace, meta.name))

    def _read_again(self, claim: Claim) -> None:
        for pod in self._claimants.of(claim):
            self.pod(pod)

    def volume(self, volume: wire.PersistentVolume) -> None:
        """Take a volume over; the claim that is bound to it changes after it."""
        self._volumes.volume_upserted(volume)

    def volume_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a volume."""
        self._volumes.volume_gone(meta.name)

    def csi_node(self, node: wire.CsiNode) -> None:
        """Take over a node's attach limits."""
        self._volumes.csi_node_upserted(node)

    def csi_node_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a node's attach limits."""
        self._volumes.csi_node_gone(meta.name)

    def gang_object(self, uid: str, spec: GangSpec | None) -> None:
        """Take over what an object says of a gang; None: it describes none (any more)."""
        for event in self._objects.upserted(uid, spec):
            self._engine.apply(event)

    def gang_object_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget what a deleted object said of a gang."""
        for event in self._objects.gone(meta.uid):
            self._engine.apply(event)

    def is_echo(self, pod: wire.Pod) -> bool:
        """Whether a watched version of a pod is the one that its release made.

        Only for what a watch tells: it leaves no version out, so there is nothing in it but
        the release, and that was applied when its reply came. Not while the namespace is
        judged again, which counts every event.
        """
        meta = pod.metadata
        known = self._pending.get(translate.pod_uid(meta.uid))
        if known is None or not known.released_as:
            return False
        return known.released_as == meta.resource_version and meta.namespace not in self.rejudging

    def judge_again(self, pod: wire.Pod) -> None:
        """Take over a pod of a namespace that was listed again, unless the watch knows better.

        A list may be older than what the watch has told since: a pod that had an event is
        judged already, and one that is not known is gone or will be told.
        """
        uid = translate.pod_uid(pod.metadata.uid)
        known = self._engine.state.pod_row(uid) is not None
        if known and not self.rejudging.was_seen(pod.metadata.namespace, uid):
            self.pod(pod)

    def pod(self, pod: wire.Pod) -> None:
        """Take a pod over."""
        uid = translate.pod_uid(pod.metadata.uid)
        self.rejudging.saw(pod.metadata.namespace, uid)
        if self.is_managed(pod):
            self._managed(uid, pod)
            return
        new = self._engine.state.pod_row(uid) is None
        if new and self._policy.slipped_past(pod, self._namespaces.get(pod.metadata.namespace, {})):
            self._reporter.slipped_past(pod)
        self._leave(uid, None)
        self._drop(uid)
        self._engine.apply(self._translator.pod_event(pod, volumes=self._volumes))

    def _managed(self, uid: PodUid, pod: wire.Pod) -> None:
        member = self._member(uid, pod)
        event = self._translator.pod_event(
            pod,
            gang=member.key,
            role=member.role,
            rank=member.rank,
            managed=True,
            volumes=self._volumes,
        )
        # Before the event: its effects may lead straight to the release, which reads this.
        if event.finished and not event.succeeded:
            self._tell_lost(uid)
        if event.node is None and not event.finished:
            self._keep(uid, pod, member, event.pod_class)
        else:
            self._drop(uid)
        self._engine.apply(event)

    def _member(self, uid: PodUid, pod: wire.Pod) -> Member:
        """Return the pod's place in its gang, and note what the pod says of that gang.

        A pod's keys are read once; its status changes more often than its keys do.
        """
        said = _said(pod)
        known = self._pending.get(uid)
        if known is not None and known.said == said:
            return known.member
        member = member_or_single(pod)
        self._leave(uid, member.key)
        self._join(uid, member.key, spec_from_pod(pod))
        return member

    def _keep(self, uid: PodUid, pod: wire.Pod, member: Member, pod_class: PodClass) -> None:
        if self._pending.get(uid) is None and pod_class.unmodelled:
            self._reporter.unmodelled(pod, pod_class.unmodelled)
        soft = suffers_from_pin(pod_class)
        self._pending.put(uid, pending(pod, member, said=_said(pod), soft=soft))
        self._claimants.drop(uid)
        self._claimants.put(uid, pod)

    def _drop(self, uid: PodUid) -> None:
        self._pending.drop(uid)
        self._claimants.drop(uid)

    def _join(self, uid: PodUid, key: GangKey, spec: GangSpec | None) -> None:
        """Note what the pod says of its gang. A lone pod has nobody to disagree with."""
        if spec is None:
            return
        if key.startswith(f"{SINGLE.name}/"):
            self._engine.apply(GangUpserted(spec))
            return
        event = self._specs.seen(uid, spec)
        if event is not None:
            self._engine.apply(event)

    def _leave(self, uid: PodUid, now: GangKey | None) -> None:
        """Note that a pod is no longer what it was a member of."""
        before = self._engine.state.gang_of(uid)
        if before is not None and before != now:
            self._end_membership(uid, before)

    def _end_membership(self, uid: PodUid, key: GangKey) -> None:
        if key.startswith(f"{SINGLE.name}/"):
            self._engine.apply(GangGone(key))
            return
        event = self._specs.gone(uid, key)
        if event is not None:
            self._engine.apply(event)

    def pod_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a deleted pod."""
        self.forget(translate.pod_uid(meta.uid))

    def _tell_lost(self, uid: PodUid) -> None:
        """Tell of a bound member that is about to leave its node; called before it does."""
        hold = self._engine.state.hold(uid)
        if hold is not None and hold.state is HoldState.CONFIRMED and hold.gang is not None:
            self.lost(hold.gang, hold.node)

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that does not exist any more, whoever found out."""
        key = self._engine.state.gang_of(uid)
        self._tell_lost(uid)
        self._drop(uid)
        self._engine.apply(PodGone(uid))
        if key is not None:
            self._end_membership(uid, key)
