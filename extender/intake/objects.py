"""The ``Feed``: from a wire object to the events of the model, which are applied to the engine.

It finds out the gang of a pod, whether the pod is managed, and its volumes. There is one method
for each kind and each direction (upserted, gone). An object that cannot be read is counted and
logged; it does not stop the others.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from extender.engine import Engine
from extender.intake.firstlist.siblings import Siblings
from extender.intake.foreignmembers import ForeignMembers
from extender.intake.memberships import Memberships, digest_of
from extender.intake.nodes import NodeFeed
from extender.intake.operatorgroups import OperatorGroups
from extender.intake.podwatchers import PodWatchers
from extender.intake.reopenednamespaces import Rejudging
from extender.intake.statedspecs import SpecBook
from extender.intake.volumeclaims import ClaimUsers, StartClaim
from extender.pendingpods import PendingPods, pending, suffers_from_pin
from extender.planning.gangages import GangAges
from extender.reporting.reporter import DecisionReporter
from muster.cluster.events import Event, GangGone, GangUpserted, PodForgotten, PodGone, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.holds import HoldState
from muster.kube import names, wire, wirestorage
from muster.kube.translation import translate
from muster.kube.translation.volumes import VolumeIndex
from muster.workloads.dialect import Member, Specs
from muster.workloads.dialects.batchjob import Job
from muster.workloads.gangbook import GangBook
from muster.workloads.gangobjects import GangObjects
from muster.workloads.jobmembers import MemberJobs, members
from muster.workloads.keys.levels import resolve
from muster.workloads.keys.queuenames import named_queue
from muster.workloads.managedpods import ManagedPolicy, is_ours, takes
from muster.workloads.registry import (
    SINGLE,
    PodMembership,
    conflicts_as,
    names_a_group,
    place,
    place_or_single,
)

Namespaces = dict[str, Mapping[str, str]]
Newcomers = Callable[[GangKey, Sequence[int]], None]


class Feed:
    """Applies objects to the engine, and stores what releases and answers need beside the model."""

    def __init__(
        self,
        engine: Engine,
        policy: ManagedPolicy,
        levels: Sequence[str],
        pods: PendingPods,
        reporter: DecisionReporter,
        namespaces: Namespaces,
        watchers: PodWatchers,
        ages: GangAges | None = None,
    ) -> None:
        """``levels``: the cluster's node label keys, widest first.

        ``namespaces``: labels by name; the feed updates them, other parts read them.
        ``ages``: of gangs that gave way, ``None`` where gangs never do.
        """
        self._engine = engine
        self._policy = policy
        self._levels = levels
        self._pending = pods
        self._reporter = reporter
        self._translator = translate.Translator(policy.devices)
        self.nodes = NodeFeed(
            engine, reporter, policy.device_names, watchers.node_changed, watchers.notices
        )
        self._volumes = VolumeIndex()
        self._claim_users = ClaimUsers()
        self._objects = GangObjects()
        self._book = GangBook()
        self._foreign = ForeignMembers()
        self._specs = SpecBook(ages)
        self._jobs = MemberJobs()
        self._memberships = Memberships()
        self._watchers = watchers
        self._checkpoints = watchers.checkpoints
        self._listeners: list[Newcomers] = []
        self.namespaces = namespaces
        self.rejudging = Rejudging()
        self._groups = OperatorGroups()
        self.siblings = Siblings(
            self._translator, self._volumes, self._book, self._foreign, self._groups
        )

    def listen(self, listener: Newcomers) -> None:
        """Have ``listener`` called with a gang and the ranks of its new members.

        It is called before the members are in the state, since room may be reserved for them.
        """
        self._listeners.append(listener)

    def is_managed(self, pod: wire.Pod) -> bool:
        """Return whether a pod is managed; also for pods that the watch has not shown yet."""
        return self._policy.is_managed(pod, self.namespaces.get(pod.metadata.namespace, {}))

    def covers(self, namespace: str) -> bool:
        """Return whether pods of a namespace can be managed at all."""
        return self._policy.covers(namespace, self.namespaces.get(namespace, {}))

    def namespace(self, namespace: wire.Namespace) -> None:
        """Apply a namespace. If ``muster.dev/managed`` changed, its pods are judged again."""
        name, labels = namespace.metadata.name, namespace.metadata.labels
        if takes(labels) != takes(self.namespaces.get(name, {})):
            self.rejudging.due(name)
        self.namespaces[name] = labels
        self._engine.apply(translate.namespace_event(namespace))

    def namespace_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a namespace."""
        self.namespaces.pop(meta.name, None)
        self.rejudging.done(meta.name)
        self._engine.apply(translate.namespace_gone(meta))

    def node(self, node: wire.Node) -> None:
        """Apply a node."""
        self.nodes.take(node)

    def node_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a node."""
        self.nodes.gone(meta)

    def claim(self, claim: wirestorage.PersistentVolumeClaim) -> None:
        """Apply a claim, and read the pending pods again that use it."""
        self._volumes.claim_upserted(claim)
        self._read_again((claim.metadata.namespace, claim.metadata.name))

    def claim_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a claim."""
        self._volumes.claim_gone(meta.namespace, meta.name)
        self._read_again((meta.namespace, meta.name))

    def _read_again(self, claim: StartClaim) -> None:
        for pod in self._claim_users.of(claim):
            self.pod(pod)

    def volume(self, volume: wirestorage.PersistentVolume) -> None:
        """Apply a volume. The claim that is bound to it changes later, with an event of its own."""
        self._volumes.volume_upserted(volume)

    def volume_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a volume."""
        self._volumes.volume_gone(meta.name)

    def csi_node(self, node: wirestorage.CsiNode) -> None:
        """Apply a node's attach limits."""
        self._volumes.csi_node_upserted(node)

    def csi_node_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a node's attach limits."""
        self._volumes.csi_node_gone(meta.name)

    def gang_object(self, uid: str, specs: Specs) -> None:
        """Apply the gang specs in an object; None: it describes no gang (any more)."""
        self._apply_specs(self._objects.upserted(uid, specs))

    def gang_object_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget what a deleted object said of a gang."""
        self._apply_specs(self._objects.gone(meta.uid))
        self._groups.gone(meta.uid)
        self._members_left(self._jobs.seen(meta.uid, None))

    def group_object(self, key: GangKey, meta: wire.ObjectMeta) -> None:
        """Take over who made an object that only describes pods of others, the gang ``key``.

        Pods that came before a group that an operator made are judged again.
        """
        if not self._groups.seen(key, meta):
            return
        pods = self._engine.state.members(key)
        for uid in pods:
            self._memberships.drop(uid)
        if pods:
            self.rejudging.due(meta.namespace)

    def job(self, job: Job) -> None:
        """Take over how many members a Job still has for a gang that it is not by itself."""
        self._members_left(self._jobs.seen(job.metadata.uid, members(job)))

    def jobs_of(self, key: GangKey) -> list[int]:
        """Return how many pods each Job makes at one time that is known to make members."""
        return [job.pods for job in self._jobs.of(key)]

    def _members_left(self, gangs: Iterable[GangKey]) -> None:
        """Apply that gangs need more or fewer members than they did."""
        for key in gangs:
            gang = self._engine.state.gang(key)
            spec = self._jobs.stated(key, None if gang is None else gang.spec)
            if spec is not None:
                self._apply(self._book.told(self._jobs.remaining(spec)))

    def _apply_specs(self, events: Iterable[Event]) -> None:
        """Apply events about the specs of gangs to the gangs in the model."""
        for event in events:
            if isinstance(event, GangUpserted):
                spec = resolve(event.spec, self._levels)
                if spec.key in self._jobs.gangs or spec.key in self._jobs.specs:
                    spec = self._jobs.remaining(spec)
                self._apply(self._book.told(spec))
            elif isinstance(event, GangGone):
                self._jobs.gone(event.key)
                self._apply(self._book.gone(event.key))

    def _apply(self, events: Iterable[Event]) -> None:
        for event in events:
            self._engine.apply(event)

    def is_echo(self, pod: wire.Pod) -> bool:
        """Return whether a watched version of a pod is the one that its release made.

        It is for watches only. A watch leaves no version out, so this version has no other change
        than the release, which was applied when its reply arrived. The result is False while the
        pod's namespace is judged again, since that must see every event.
        """
        if not self._pending.echoes:
            return False
        meta = pod.metadata
        known = self._pending.get(translate.pod_uid(meta.uid))
        if known is None or not known.released_as:
            return False
        return known.released_as == meta.resource_version and meta.namespace not in self.rejudging

    def echoes(self) -> AbstractSet[bytes]:
        """Return the versions that releases made; none while a namespace is judged again."""
        return frozenset() if self.rejudging.seen else self._pending.echoes

    def judge_again(self, pod: wire.Pod) -> None:
        """Apply a pod of a namespace that was listed again, unless the watch has shown it since.

        A list may be older than what the watch has shown. A pod that had an event is judged
        already. An unknown pod is either deleted or will be shown by the watch.
        """
        uid = translate.pod_uid(pod.metadata.uid)
        known = self._engine.state.pod_row(uid) is not None
        if known and not self.rejudging.was_seen(pod.metadata.namespace, uid):
            self.pod(pod)

    def pod(self, pod: wire.Pod) -> None:
        """Apply a pod."""
        uid = translate.pod_uid(pod.metadata.uid)
        if self.rejudging.seen:
            self.rejudging.saw(pod.metadata.namespace, uid)
        if names.PLAN in pod.metadata.annotations and not pod.spec.node_name:
            pod = self._watchers.plans.read(uid, pod)
        elif uid in self._watchers.plans.verdicts:
            self._watchers.plans.drop(uid)
        new = self._engine.state.pod_row(uid) is None
        ours = is_ours(pod)
        placed = None if ours else place(pod, self._groups.is_owned)
        labels = self.namespaces.get(pod.metadata.namespace, {})
        explicit = placed is not None and placed.explicit
        if ours or self._policy.is_managed(pod, labels, explicit=explicit):
            self._managed(uid, pod, placed, new=new)
            return
        if new and self._policy.slipped_past(pod, labels, explicit=explicit):
            self._reporter.slipped_past(pod)
            self._watchers.slipped.see(uid, pod, None)
            self._watchers.devices.arrived(pod)
        elif placed is not None and explicit:
            self._note_foreign(uid, pod, placed.member, new=new)
        self._leave(uid, None)
        self._drop_pending(uid)
        self._engine.apply(self._unmanaged(pod))

    def unread(self, pod: wire.Pod) -> None:
        """Apply the room that a pod takes on its node and of its queue, and nothing else of it.

        For a pod that cannot be read as a whole. Raises where not even that can be read.
        """
        uid = translate.pod_uid(pod.metadata.uid)
        self._leave(uid, None)
        self._drop_pending(uid)
        self._engine.apply(self._unmanaged(pod, _bare(pod)))

    def unmanaged_event(self, pod: wire.Pod) -> PodUpserted | None:
        """Return the event of a bound pod that is not managed and needs no report, else ``None``.

        The result depends only on the pod and on whether its namespace ``takes`` part.
        """
        if not pod.spec.node_name or is_ours(pod) or names_a_group(pod):
            return None
        labels = self.namespaces.get(pod.metadata.namespace, {})
        if self._policy.is_managed(pod, labels, explicit=False):
            return None
        if self._policy.slipped_past(pod, labels, explicit=False):
            return None
        return self._unmanaged(pod)

    def _unmanaged(self, pod: wire.Pod, read: wire.Pod | None = None) -> PodUpserted:
        """Return the event of a pod that others place: it is charged to the queue it names.

        ``read``: what of it can be read, if that is not all.
        """
        queue = named_queue(pod.metadata)
        return self._translator.pod_event(read or pod, queue=queue, volumes=self._volumes)

    def _note_foreign(self, uid: PodUid, pod: wire.Pod, member: Member, *, new: bool) -> None:
        """Note a member of a gang that names another scheduler."""
        key = self._book.resolve(member).key
        if pod.spec.node_name:
            self._foreign.drop(uid)
            return
        self._foreign.put(uid, key, pod)
        if new and self._waits(key):
            self._reporter.foreign_member(pod, key)

    def _waits(self, key: GangKey) -> bool:
        gang = self._engine.state.gang(key)
        return gang is not None and len(gang.waiting) > 0

    def _managed(
        self, uid: PodUid, pod: wire.Pod, placed: PodMembership | None, *, new: bool
    ) -> None:
        member = self._member(uid, pod, placed, new=new)
        if new:
            self._call_listeners(member.key, (member.rank,))
            self._watchers.slipped.see(uid, pod, member.key)
            self._watchers.devices.arrived(pod)
        event = self.siblings.event(pod, member)
        # Before the event: its effects may start the release, which reads all of this.
        if event.finished and not event.succeeded:
            self._report_lost(uid, self._engine.state.gang_of(uid))
        self._watchers.networks.see(uid, pod.metadata, event.finished)
        if names.CHECKPOINTED_AT in pod.metadata.annotations or uid in self._checkpoints.noted:
            self._checkpoints.see(uid, pod)
        if event.finished:
            self._watchers.slipped.drop(uid)
        carried = self._pending.get(uid)
        if event.node is None and not event.finished:
            self._store_pending(uid, pod, event.pod_class)
            self._reporter.pod_created(uid, member.key)
        else:
            self._drop_pending(uid)
        self._engine.apply(event)
        if carried is not None and carried.plan_id and not carried.pinned:
            self._note_taken_back(uid, carried.plan_id)

    def listed_running(
        self, uid: PodUid, meta: wire.ObjectMeta, placed: PodMembership, member: Member
    ) -> None:
        """Note a new member that was listed running, before it is in the state.

        ``placed``: the membership that is written on it. The pod must be quiet (``is_quiet``).
        """
        self._join(uid, placed)
        self._call_listeners(member.key, (member.rank,))
        self._watchers.networks.see(uid, meta, False)

    def listed_running_together(
        self, uids: Sequence[PodUid], placed: PodMembership, ranks: Sequence[int]
    ) -> None:
        """Note such members of one gang (``listed_running``) that are in no isolated network.

        ``placed``: the membership on one of them. The others' differ only by rank (``Ranked``).
        """
        if placed.spec is not None:
            self._apply_specs(list(self._specs.seen_all(uids, placed.spec)))
        self._call_listeners(self._book.resolve(placed.member).key, ranks)

    def _call_listeners(self, gang: GangKey, ranks: Sequence[int]) -> None:
        for listener in self._listeners:
            listener(gang, ranks)

    def expect(self, uid: PodUid, pod: wire.Pod, placed: PodMembership) -> PodUpserted:
        """Note the membership of a pod that is about to be created; return the pod's event."""
        member = self._book.resolve(placed.member)
        self._join(uid, placed)
        return self._translator.pod_event(
            pod, gang=member.key, rank=member.rank, managed=True, volumes=self._volumes
        )

    def class_of(self, pod: wire.Pod) -> PodClass:
        """Return the requests and constraints of a pod."""
        return self._translator.pod_event(pod, managed=True, volumes=self._volumes).pod_class

    def has(self, uid: str) -> bool:
        """Return whether a pod is in the state."""
        return self._engine.state.pod_row(translate.pod_uid(uid)) is not None

    def drop_expected(self, uid: PodUid, key: GangKey) -> None:
        """Forget the membership of an expected pod."""
        self._end_membership(uid, key)

    def _note_taken_back(self, uid: PodUid, plan_id: str) -> None:
        """Forget a plan whose annotation was removed from a nominated pod.

        The leader takes plans of nominated pods back (``extender.releases.repairer``). A standby
        notices it here, and so does a leader that lost the reply to its PATCH. The plan of a pinned
        pod stays, even if its annotation is removed.
        """
        pod, hold = self._pending.get(uid), self._engine.state.hold(uid)
        if pod is None or pod.gated or pod.plan_id or hold is None:
            return
        if hold.state is HoldState.RELEASED and hold.plan_id == plan_id:
            self._engine.apply(PodForgotten(uid, "taken back", nominated=True))

    def _member(
        self, uid: PodUid, pod: wire.Pod, placed: PodMembership | None, *, new: bool
    ) -> Member:
        """Return the pod's membership, and note the spec of the gang that is written on the pod.

        A pod's keys are read once; its status changes more often than its keys do.
        """
        digest = digest_of(pod)
        known = self._memberships.get(uid, digest)
        if known is not None:
            return self._book.resolve(known)
        placed = placed or place_or_single(pod, self._groups.is_owned)
        key = self._book.resolve(placed.member).key
        if new:
            self._report_conflicts(pod, placed, key)
        else:
            self._leave(uid, key)
        self._join(uid, placed)
        self._memberships.put(uid, digest, placed.member)
        return self._book.resolve(placed.member)

    def _report_conflicts(self, pod: wire.Pod, placed: PodMembership, key: GangKey) -> None:
        """Report contradictory keys of a new member, and foreign members when it is the first."""
        for text in conflicts_as(pod, None if placed.dialect is SINGLE else placed):
            self._reporter.conflict(pod, key, text)
        foreign = self._foreign.of(key) if self._foreign.pods else []
        if foreign and not self._waits(key):
            for other in foreign:
                self._reporter.foreign_member(other, key)

    def _store_pending(self, uid: PodUid, pod: wire.Pod, pod_class: PodClass) -> None:
        if self._pending.get(uid) is None and pod_class.unmodelled:
            self._reporter.unmodelled(pod, pod_class.unmodelled)
        soft = suffers_from_pin(pod_class)
        maker = self._pending.controller(pod)
        made = pending(pod, soft=soft, controller=maker)
        self._pending.put(uid, made)
        self._claim_users.drop(uid)
        self._claim_users.put(uid, pod)

    def _drop_pending(self, uid: PodUid) -> None:
        self._pending.drop(uid)
        self._claim_users.drop(uid)

    def _join(self, uid: PodUid, placed: PodMembership) -> None:
        """Note the spec on the pod. The spec of a gang of one needs no comparison with others."""
        spec, template = placed.spec, placed.member.template
        if template is not None:
            described = self._engine.state.gang(template)
            copied = None if described is None else described.spec
            self._apply(self._book.came(uid, placed.member, copied))
        if spec is None:
            return
        if placed.dialect is SINGLE:
            self._engine.apply(GangUpserted(spec))
            return
        event = self._specs.seen(uid, spec)
        if event is not None:
            self._apply_specs([event])

    def _leave(self, uid: PodUid, now: GangKey | None) -> None:
        """Note that a pod has left the gang that it was a member of before."""
        self._memberships.drop(uid)
        before = self._engine.state.gang_of(uid)
        if before is not None and before != now:
            self._end_membership(uid, before)

    def _end_membership(self, uid: PodUid, key: GangKey) -> None:
        if key.startswith(f"{SINGLE.name}/"):
            return  # a gang of one ends with its pod
        for part in self._book.parts(key):
            event = self._specs.gone(uid, part)
            if event is not None:
                self._apply_specs([event])
        self._apply(self._book.left(uid, key))

    def pod_gone(self, meta: wire.ObjectMeta) -> None:
        """Forget a deleted pod."""
        self.forget(translate.pod_uid(meta.uid))

    def _report_lost(self, uid: PodUid, key: GangKey | None) -> None:
        """Report a bound member that is about to leave its node."""
        node = None if key is None else self._engine.state.bound_node(uid)
        if key is not None and node is not None:
            self._watchers.lost(key, node)

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that does not exist any more."""
        key = self._engine.state.gang_of(uid)
        self._report_lost(uid, key)
        self._drop_pending(uid)
        self._memberships.drop(uid)
        self._foreign.drop(uid)
        self._watchers.networks.drop(uid)
        self._watchers.slipped.drop(uid)
        self._watchers.plans.drop(uid)
        if uid in self._checkpoints.noted:
            self._checkpoints.drop(uid)
        self._engine.apply(PodGone(uid))
        if key is not None:
            self._end_membership(uid, key)


def _bare(pod: wire.Pod) -> wire.Pod:
    """Return a pod with its names, its node and its requests."""
    meta, spec = pod.metadata, pod.spec
    return wire.Pod(
        metadata=wire.ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
        ),
        spec=wire.PodSpec(
            node_name=spec.node_name,
            containers=spec.containers,
            init_containers=spec.init_containers,
            overhead=spec.overhead,
            resources=spec.resources,
        ),
        status=pod.status,
    )
