"""The answers of ``filter``, ``prioritize`` and ``preempt``: body in, reply out, no effects.

kube-scheduler calls ``filter`` speculatively, twice in a cycle (first with the nominated node
alone), and for candidate placements that it then reverts. The calls do not show which case it is.
So these functions only read. Only the release PATCH and the Binding commit something.

::

    pod has a hold ──── planned node offered ─────────► that node alone
        │                 else a spare offered ───────► the spare alone
        │                 offered, but is gone ───────► an error: the two views differ
        │                 else ───────────────────────► none: planned elsewhere
    pod is managed ──── no hold yet ──────────────────► none: the gang waits
        │                 or its namespace is new ──────► its labels are read from the API server
    pod is not ours ──────────────────────────────────► everything that was offered

After a rejection kube-scheduler tries the pod again only after an event that it sees. The gang's
plan is such an event, since it is written into the pod. So is any change that makes a planned node
feasible. But if its view and ours differ, there may be no further event. So the answer is an error
then, and kube-scheduler tries again by itself after 10 s at most (its longest back-off).

A reply with one name also saves the call of ``prioritize``: kube-scheduler does not score a single
feasible node.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.calls import wire
from extender.errors import MalformedCall, NamespaceUnseen, NotReady
from extender.metrics import FilterAnswer
from extender.planning.holding import PlanHolder
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.holds import Hold
from muster.kube.names import PLAN
from muster.kube.translation.planannotation import plan_note
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Pod
from muster.queueing.gangsurvival import breaks
from muster.workloads.managedpods import has_gate, is_ours, takes

IsManaged = Callable[[Pod], bool]
Labels = Mapping[str, str]

POD: Final = msgspec.json.Decoder(Pod)
CHECKED_NAMES_BYTES: Final = 256 * 1024
"""Above this size names are returned unread: reading 130,000 takes 6 ms, and kube-scheduler
rejects names that it did not offer."""
LISTED_SCORES: Final = 1000
"""For more names the reply scores the planned node only; a name that is left out counts as 0."""


@dataclass(frozen=True, slots=True)
class FilterReply:
    """A reply of ``filter``."""

    #: the bytes to send
    body: bytes
    #: the kind of answer, for the metrics; None for an error
    answer: FilterAnswer | None


@dataclass(slots=True)
class Verbs:
    """The answers, computed from the state.

    A verb raises ``NamespaceUnseen`` if the labels of a namespace decide and are not known, since
    kube-scheduler may be ahead of our watch. The caller then calls the verb again with the
    ``labels``. A wrong rejection would last for minutes, because kube-scheduler gets no events of
    namespaces.
    """

    state: ClusterState
    holding: PlanHolder
    #: judges pods that the watch has not shown yet
    is_managed: IsManaged
    #: returns whether the labels of a namespace are known
    has_seen: Callable[[str], bool]
    #: returns whether the plan counts of a pod that the watch has not shown yet
    plan_counts: Callable[[Pod], bool]
    #: returns whether the cluster has been listed, so that answers are meaningful
    ready: Callable[[], bool]

    def filter(self, body: bytes, labels: Labels | None = None) -> FilterReply:
        """Answer ``filter`` by decoding; raises ``MalformedCall`` and ``NamespaceUnseen``."""
        if not self.ready():
            return FilterReply(wire.filter_error(wire.Reason.NOT_READY), None)
        return self._filter_decoded(body, labels)

    def planned(self, uid: str) -> str | None:
        """Return the node a pod is planned on, for the search in a body that is still arriving.

        Returns None for a broken plan, too: its remaining nodes are checked with the whole body.
        """
        hold = self._hold(pod_uid(uid)) if self.ready() else None
        return None if hold is None or hold.broken else hold.node

    def _filter_decoded(self, body: bytes, labels: Labels | None) -> FilterReply:
        args = wire.read_args(body)
        pod = wire.decode(POD, args.pod, "Pod")
        uid = _uid(pod)
        hold = self._hold(uid) or self._written_plan(uid, pod)
        if hold is not None:
            return self._held(args, uid, hold)
        if self._waits(uid, pod, labels):
            return _reject(args, wire.Reason.WAITING, FilterAnswer.WAITING)
        return _everything(args)

    def _hold(self, uid: PodUid) -> Hold | None:
        """Return a pod's hold once its whole gang is held."""
        hold = self.state.hold(uid)
        return hold if hold is not None and self.holding.counts(hold) else None

    def _written_plan(self, uid: PodUid, pod: Pod) -> Hold | None:
        """Return the plan that a pod was created with, if our watch has not shown the pod yet."""
        if self.state.pod_row(uid) is not None or has_gate(pod) or not self.is_managed(pod):
            return None
        note = plan_note(pod.metadata.annotations.get(PLAN, ""))
        if note is None or not self.plan_counts(pod):
            return None
        return Hold.of_note(note, None)

    def _waits(self, uid: PodUid, pod: Pod, labels: Labels | None) -> bool:
        """Return whether a pod without a hold is managed, even if no watch has shown it yet."""
        seen = self.has_seen(pod.metadata.namespace)
        if seen and self.state.pod_row(uid) is not None:
            return self.state.gang_of(uid) is not None
        managed = self.is_managed(pod)
        if seen or not managed or is_ours(pod):
            return managed
        if labels is None:
            raise NamespaceUnseen(pod.metadata.namespace)
        return takes(labels)

    def prioritize(self, body: bytes) -> bytes:
        """Answer ``prioritize``; raises ``MalformedCall`` and ``NotReady``."""
        self._need_ready()
        args = wire.read_args(body)
        names = wire.node_names(args)
        uid = _uid(wire.decode(POD, args.pod, "Pod"))
        hold = self._hold(uid)
        planned = None if hold is None else self._choice(uid, hold, names)[0]
        if len(names) > LISTED_SCORES:
            names = [] if planned is None else [planned]
        return wire.priorities(names, planned)

    def preempt(self, body: bytes, labels: Labels | None = None) -> bytes:
        """Answer ``preempt`` with a subset of the nodes.

        Raises ``MalformedCall``, ``NamespaceUnseen`` and ``NotReady``.

        A node stays if its victims break no gang (``muster.queueing.gangsurvival``). If some of
        these nodes violate no disruption budget, only those stay. A managed
        preemptor may only evict on its planned nodes. While its gang waits it may not evict at all:
        evictions for one member would be in vain.

        Since kubernetes#135486 kube-scheduler also sends candidates without victims: the node fits,
        but an extender had rejected it. Before that, a node without victims in the reply was an
        error. For pods that are not managed such candidates are returned, so only a scheduler that
        sent them gets them. For managed pods they are dropped: such a pod does not need evictions.
        """
        self._need_ready()
        args = wire.read_preemption(body)
        allowed = self._allowed(wire.decode(POD, args.pod, "Pod"), labels)
        left = {
            node: victims
            for node, victims in args.victims.items()
            if (allowed is None or (node in allowed and victims.uids))
            and not self._breaks_a_gang(victims)
        }
        return wire.preemption_result(_within_budgets(left))

    def _allowed(self, pod: Pod, labels: Labels | None) -> tuple[str, ...] | None:
        """Return the nodes where the preemptor may evict; None means any."""
        uid = _uid(pod)
        hold = self._hold(uid)
        if hold is not None:
            return tuple(self._open_nodes(uid, hold))
        return () if self._waits(uid, pod, labels) else None

    def _breaks_a_gang(self, victims: wire.Victims) -> bool:
        gangs: dict[GangKey, list[int]] = {}
        for uid in map(pod_uid, victims.uids):
            key, row = self.state.gang_of(uid), self.state.pod_row(uid)
            if key is not None and row is not None:
                gangs.setdefault(key, []).append(row)
        if not gangs:
            return False
        snapshot = self.state.snapshot()
        return any(breaks(snapshot, key, rows) for key, rows in gangs.items())

    def _held(self, args: wire.ExtenderArgs, uid: PodUid, hold: Hold) -> FilterReply:
        node, answer = self._choice(uid, hold, wire.node_names(args))
        if answer is FilterAnswer.LOST:
            return FilterReply(wire.filter_error(wire.Reason.LOST), answer)
        if node is None:
            return _reject(args, wire.Reason.ELSEWHERE, answer)
        if not args.has_nodes:
            return FilterReply(wire.filter_names(b'["%b"]' % node.encode()), answer)
        raw = next(raw for name, raw in wire.node_items(args) if name == node)
        return FilterReply(wire.filter_nodes(b'{"items":[%b]}' % bytes(raw), [node]), answer)

    def _choice(self, uid: PodUid, hold: Hold, names: list[str]) -> tuple[str | None, FilterAnswer]:
        """Return the node for a held pod among those offered."""
        offered = set(names)
        for node in self._open_nodes(uid, hold):
            if node in offered:
                return node, FilterAnswer.PLANNED if node == hold.node else FilterAnswer.SPARE
        is_ours = not offered.isdisjoint(candidates(hold))
        return None, FilterAnswer.LOST if is_ours else FilterAnswer.ELSEWHERE

    def _open_nodes(self, uid: PodUid, hold: Hold) -> Iterator[str]:
        """Yield the candidates that can still take the pod, by the state.

        kube-scheduler's view of the nodes may be older than ours. A pod that it binds to a deleted
        node would be lost for its gang.
        """
        return (node for node in candidates(hold) if self.state.takes(uid, node))

    def _need_ready(self) -> None:
        if not self.ready():
            raise NotReady(wire.Reason.NOT_READY)


def _uid(pod: Pod) -> PodUid:
    if not pod.metadata.uid:
        raise MalformedCall("Pod.metadata.uid: is missing")
    return pod_uid(pod.metadata.uid)


def _within_budgets(candidates: Mapping[str, wire.Victims]) -> Mapping[str, wire.Victims]:
    """Return the nodes without violations of a disruption budget; all nodes if there is none.

    kube-scheduler prefers them, too, but only after all extenders. A later extender must not be
    left with violations only.
    """
    within = {node: victims for node, victims in candidates.items() if not victims.pdb_violations}
    return within or candidates


def plan_hit(node: str) -> FilterReply:
    """Return the reply of ``filter`` for a pod whose planned node was offered."""
    return FilterReply(wire.filter_names(b'["%b"]' % node.encode()), FilterAnswer.PLANNED)


def candidates(hold: Hold) -> tuple[str, ...]:
    """Return the nodes a held pod may go to, best first: the planned node, spares, its pin.

    A pin cannot be changed. So its nodes stay allowed after the plan has moved to a spare;
    kube-scheduler has checked the nodes that it offers.
    """
    return tuple(dict.fromkeys((hold.node, *hold.spares, *hold.pins)))


def _reject(args: wire.ExtenderArgs, reason: wire.Reason, answer: FilterAnswer) -> FilterReply:
    if not args.has_nodes and len(raw := bytes(args.node_names)) > CHECKED_NAMES_BYTES:
        quick = wire.filter_rejection_raw(raw, reason)
        if quick is not None:
            return FilterReply(quick, answer)
    names = wire.node_names(args)
    return FilterReply(wire.filter_rejection(names, reason, with_nodes=args.has_nodes), answer)


def _everything(args: wire.ExtenderArgs) -> FilterReply:
    """Return all offered nodes, in the bytes of the request."""
    if args.has_nodes:
        body = wire.filter_nodes(bytes(args.nodes), wire.node_names(args))
    else:
        names = bytes(args.node_names)
        if len(names) <= CHECKED_NAMES_BYTES:
            wire.node_names(args)
        body = wire.filter_names(b"[]" if names == b"null" else names)
    return FilterReply(body, FilterAnswer.UNMANAGED)
