"""What operators see of decisions: one log line, one Event, and metrics, for each.

Events about a gang are recorded on its first waiting pod and on that pod's controller (the Job that
people describe), once per change of reason. The recorder aggregates repeated Events. If all members
are bound, ``extender.reporting.boundgangs`` finds one of them. Numbers appear here and in
``explain``, never in the reasons that kube-scheduler gets.
"""

import logging
from collections.abc import Callable

import numpy as np

from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPod, PendingPods
from extender.reporting.boundgangs import DueEvents, EventText
from muster.cluster.events import PlanHeld
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.kube.names import CHECKPOINTED_AT, PLAN
from muster.kube.wire import OwnerReference, Pod
from muster.kube.writing.events import EventRecorder, Regarding
from muster.kube.writing.podwrites import PodRef
from muster.placement.decision import Decision, Plan, Reject, Wait, WaitReason, repeats
from muster.placement.reasons import explanation as explain
from muster.queueing.backfill import promisetext
from muster.queueing.backfill.promise import Promise

log = logging.getLogger(__name__)


class DecisionReporter:
    """Reports decisions; decides nothing."""

    def __init__(
        self,
        state: ClusterState,
        pods: PendingPods,
        recorder: EventRecorder,
        metrics: ExtenderMetrics,
        bound: DueEvents,
        dump: Callable[[], str] | None = None,
    ) -> None:
        """Put Events of gangs with only bound members into ``bound``.

        ``dump`` asks for a dump about a fault and returns its path, or why there is none.
        """
        self._state = state
        self._bound = bound
        self._pods = pods
        self._recorder = recorder
        self._metrics = metrics
        self._dump = dump
        self._conflicts: dict[GangKey, str] = {}  # the last conflict that was reported of each gang
        self._for_first: dict[GangKey, str] = {}  # Event texts for the first pod that is created

    def planned(self, view: GangView, plan: Plan, held: PlanHeld) -> None:
        """Report that a gang was planned and its room is held."""
        nodes = len(np.unique(plan.nodes))
        log.info(
            "gang planned",
            extra={
                "gang": view.key,
                "plan": held.plan_id,
                "generation": plan.generation,
                "pods": len(plan.pods),
                "nodes": nodes,
                "left_over": len(plan.left_over),
                "domains": dict(plan.domains),
                "proven": plan.proven,
            },
        )
        where, *more = self._lines(plan)
        left_over = more[: bool(len(plan.left_over))]  # the Event does not mention spare nodes
        text = explain.in_one_line([f"gang {where}", *left_over])
        if not self._on_first(view, "GangPlanned", text, warning=False):
            self._for_first[view.key] = text

    def pod_created(self, uid: PodUid, key: GangKey) -> None:
        """Record the plan on the first pod of a gang that was planned before its pods existed."""
        text = self._for_first.pop(key, None) if self._for_first else None
        if text is not None:
            self._on_pod(uid, "GangPlanned", text, warning=False)

    def set_aside(self, view: GangView, decision: Wait | Reject, before: Decision | None) -> None:
        """Report that a gang does not fit now, or never will as written; once per reason."""
        if repeats(decision, before):
            return
        lines = [decision.message] if isinstance(decision, Reject) else self._lines(decision)
        log.info(
            "gang set aside",
            extra={
                "gang": view.key,
                "reason": decision.reason.value,
                "generation": decision.generation,
                "priority": view.priority,
                "skips": view.skips + 1,
                "waiting": len(view.waiting),
                **_numbers(decision),
            },
        )
        never = isinstance(decision, Reject) and not decision.reason.of_the_fleet
        reason = "GangRejected" if never else "GangWaiting"
        self._on_first(view, reason, explain.in_one_line(lines), warning=True)

    def promised(self, view: GangView, before: Promise | None, after: Promise | None) -> None:
        """Report that a start is promised, or no more, or that it moved noticeably."""
        outcome = promisetext.outcome_of(before, after)
        if not outcome:
            return
        self._metrics.promises.labels(outcome).inc()
        reason, text = promisetext.event_of(before, after)
        log.info("start promised", extra={"gang": view.key, "outcome": outcome, "text": text})
        self._on_first(view, reason, text, warning=False)

    def makes_room(self, view: GangView, text: str) -> None:
        """Report that others give way to a gang."""
        log.info("room made", extra={"gang": view.key, "text": text})
        self._on_first(view, "MakesRoom", f"gang {view.key}: {text}", warning=False)

    def makes_no_room(self, view: GangView, text: str, *, is_new: bool) -> None:
        """Report that nobody gives way to a gang; on the gang only where the reason is new."""
        log.info("no room made", extra={"gang": view.key, "text": text})
        if is_new:
            self._on_first(view, "NobodyGivesWay", f"gang {view.key}: {text}", warning=False)

    def faulty(self, decision: Wait | Reject) -> None:
        """Tell of a fault of the planner itself; the decision holds nevertheless."""
        if isinstance(decision, Reject):
            return
        why = decision.explanation
        told: dict[str, object] = {"gang": decision.gang, "generation": decision.generation}
        if decision.reason is WaitReason.UNSOUND_PLAN:
            self._metrics.faults.labels("unsound").inc()
            told |= {"broken": why.cause, "plan": why.refused}
            log.error(
                "plan refused", extra={**told, "dump": self._dump() if self._dump else "none"}
            )
        elif decision.reason is WaitReason.PLANNER_FAILED:
            self._metrics.faults.labels("error").inc()
            log.error("planner failed", extra={**told, "error": why.remedy})
        elif why.error:
            self._metrics.faults.labels("explanation").inc()
            log.error("reason unknown", extra={**told, "error": why.error})

    def _lines(self, decision: Decision) -> list[str]:
        """Return a decision in sentences, or its bare reason: it holds though words fail."""
        try:
            return explain.render(decision)
        except Exception:
            self._metrics.faults.labels("explanation").inc()
            log.exception("decision cannot be put in words", extra={"gang": decision.gang})
            known = "goes" if isinstance(decision, Plan) else f"waits: {decision.reason}"
            return [f"{decision.gang} {known}"]

    def waits(self, view: GangView, cause: str, lines: list[str]) -> None:
        """Report that a gang has waited for a while for something that planning cannot provide."""
        log.info("gang waits", extra={"gang": view.key, "cause": cause, "why": lines})
        self._on_first(view, "GangIncomplete", explain.in_one_line(lines), warning=True)

    def bound(self, key: GangKey, seconds: float, pods: int) -> None:
        """Report that all of a gang's first plan is bound."""
        extra = {"gang": key, "pods": pods, "seconds_since_submission": round(seconds, 3)}
        log.info("gang bound", extra=extra)

    def incomplete(self, key: GangKey, present: int, needed: int) -> None:
        """Report that a gang lacks members; at debug level, since every gang begins like this."""
        log.debug("gang incomplete", extra={"gang": key, "present": present, "needed": needed})

    def refused(self, pod: PendingPod, message: str) -> None:
        """Report that the API server does not accept a release."""
        log.error("release refused", extra={"pod": str(pod.ref), "error": message})
        self._warn(pod.ref, "ReleaseRefused", message, action="Releasing")

    def broken(self, uid: PodUid, reason: str, remedy: str) -> None:
        """Report that a released pod cannot bind where it is pinned, and what is done about it."""
        self._metrics.broken.labels(remedy).inc()
        pod = self._pods.get(uid)
        log.warning(
            "plan broken",
            extra={"pod": str(pod.ref) if pod else uid.hex(), "reason": reason, "remedy": remedy},
        )
        if pod is not None:
            self._warn(pod.ref, "PlanBroken", f"{reason}; {remedy}", action="Repairing")

    def partial(self, view: GangView, seconds: float) -> None:
        """Report that a gang has had some but too few members bound for ``seconds``."""
        needed = 0 if view.spec is None else view.spec.min_count
        counts = {"bound": len(view.bound), "needed": needed, "waiting": len(view.waiting)}
        log.warning("gang partial", extra={"gang": view.key, "seconds": round(seconds), **counts})
        text = (
            f"gang {view.key}: {counts['bound']} members are bound, {needed} are needed; the "
            "others are placed as soon as there is room near them"
        )
        self._on_first(view, "GangPartial", text, warning=True)

    def spares(self, view: GangView, lines: list[str]) -> None:
        """Report that a gang has fewer hot spares than it wants."""
        log.info("hot spares missing", extra={"gang": view.key, "why": lines})
        text = explain.in_one_line([f"gang {view.key}: {lines[0]}", *lines[1:]])
        self._on_first(view, "SparesMissing", text, warning=False)

    def rolled_back(self, view: GangView, pods: int) -> None:
        """Report that a gang that could not be completed is evicted, to be planned again."""
        log.warning("gang rolled back", extra={"gang": view.key, "pods": pods})
        text = f"gang {view.key} cannot be completed: {pods} members are evicted and created again"
        self._on_first(view, "GangRolledBack", text, warning=True)

    def provisioning(self, view: GangView, progress: str, message: str) -> None:
        """Report the progress of an autoscaler that was asked for a gang's nodes."""
        log.info(
            "nodes asked for",
            extra={"gang": view.key, "progress": progress, "autoscaler": message},
        )
        text = f"gang {view.key} lacks nodes: {progress}" + (f": {message}" if message else "")
        warning = progress in ("Failed", "Expired")
        self._on_first(view, f"GangProvisioning{progress}", text, warning=warning)

    def network(self, view: GangView, text: str, *, warning: bool) -> None:
        """Report on a gang's isolated network."""
        log.log(logging.WARNING if warning else logging.INFO, "network", extra={"text": text})
        reason = "GangNetworkFailed" if warning else "GangNetwork"
        self._on_first(view, reason, text, warning=warning)

    def unreachable(self, pod: PodRef, text: str) -> None:
        """Report on a member that its node does not have the devices of its network."""
        log.warning("network late", extra={"pod": str(pod), "text": text})
        self._warn(pod, "GangNetworkLate", text, action="Watching")

    def device_unhealthy(self, pod: Pod, text: str) -> None:
        """Report a running member's bad devices, on it and on its controller."""
        self._on_bound(pod, "DeviceUnhealthy", f"{text}; the pod stays", warning=True)

    def devices_healthy(self, pod: Pod, node: str) -> None:
        """Report that all devices of a running member are healthy again."""
        text = f"its devices on node {node} are healthy again"
        self._on_bound(pod, "DevicesHealthy", text, warning=False)

    def record_bound(self, pod: Pod, event: EventText) -> None:
        """Record an Event about a gang on a bound member and on its controller."""
        owner = self._pods.controller(pod)
        self._on_both(_ref(pod), owner, event.reason, event.text, warning=event.warning)

    def _on_bound(self, pod: Pod, reason: str, text: str, *, warning: bool) -> None:
        ref, owner = _ref(pod), self._pods.controller(pod)
        log.info("device health", extra={"pod": str(ref), "reason": reason, "text": text})
        self._record(ref, reason, text, action="Watching", warning=warning)
        if owner is not None:
            about = _controller(ref.namespace, owner)
            named = f"pod {ref.name}: {text}"
            self._recorder.record(about, reason, named, action="Watching", warning=warning)

    def slipped_past(self, pod: Pod) -> None:
        """Report that a pod of ours names another scheduler; the field is immutable."""
        self._metrics.foreign.inc()
        text = (
            f"spec.schedulerName is {pod.spec.scheduler_name!r}, which the webhook would have "
            "replaced; the field cannot be changed any more: create the pod again"
        )
        self._warn(_ref(pod), "ForeignScheduler", text, action="Watching")

    def uninjected(self, pod: Pod, gang: GangKey, missing: str) -> None:
        """Report, on its first pod only, that a gang's pods were created without the webhook."""
        log.warning("slipped past", extra={"gang": gang, "pod": str(_ref(pod)), "why": missing})
        text = (
            f"came while Muster's webhook did not answer: {missing}; nothing of a running pod can "
            "be changed: delete it to have it created again"
        )
        self._warn(_ref(pod), "SlippedPastWebhook", text, action="Watching")
        owner = self._pods.controller(pod)
        if owner is not None:
            about = _controller(pod.metadata.namespace, owner)
            self._recorder.record(
                about, "SlippedPastWebhook", text, action="Watching", warning=True
            )

    def unfounded_plan(self, pod: Pod, why: str) -> None:
        """Report that a pod carries a plan that Muster did not write for it."""
        self._metrics.unfounded_plans.labels(why).inc()
        log.warning("plan does not count", extra={"pod": str(_ref(pod)), "why": why})
        text = (
            f"metadata.annotations[{PLAN}]: the plan is {why}: only Muster writes plans, each for "
            "one pod; it holds no room and is taken off, and the pod waits for a plan of its own"
        )
        self._warn(_ref(pod), "PlanDoesNotCount", text, action="Watching")

    def conflict(self, pod: Pod, gang: GangKey, text: str) -> None:
        """Report that pods name several groups; the documented precedence has decided.

        It is reported once per gang, since its members were made from one template.
        """
        self._metrics.conflicts.inc()
        if self._conflicts.get(gang) == text:
            return
        self._conflicts[gang] = text
        log.warning("groups conflict", extra={"gang": gang, "pod": str(_ref(pod)), "why": text})
        advice = "the pod names both; take the keys of one of them away"
        self._warn(_ref(pod), "GroupConflict", f"{text}: {advice}", action="Watching")

    def unread_checkpoint(self, pod: Pod, value: str) -> None:
        """Report that the time of a checkpoint on a pod cannot be read."""
        text = (
            f'metadata.annotations[{CHECKPOINTED_AT}]: "{value}" is not allowed: a time with its '
            'offset (RFC 3339), such as "2026-05-01T12:00:00Z"; the last time that could be read '
            "counts, or else the start"
        )
        self._warn(_ref(pod), "CheckpointUnreadable", text, action="Watching")

    def foreign_member(self, pod: Pod, gang: GangKey) -> None:
        """Report that a gang waits for a member that names another scheduler."""
        self._metrics.foreign.inc()
        text = (
            f"gang {gang} waits for all its members, but spec.schedulerName of this one is "
            f"{pod.spec.scheduler_name!r}: give all of them the same scheduler"
        )
        self._warn(_ref(pod), "ForeignScheduler", text, action="Watching")

    def unmodelled(self, pod: Pod, constraints: tuple[str, ...]) -> None:
        """Report that a pod has constraints that only kube-scheduler knows."""
        self._metrics.unmodelled.inc()
        log.info("pod unmodelled", extra={"pod": str(_ref(pod)), "constraints": constraints})

    def unreadable(self, resource: str, problem: str) -> None:
        """Report that a part of an object could not be read and counts as absent."""
        self._metrics.unreadable.labels(resource).inc()
        log.warning("unreadable", extra={"resource": resource, "problem": problem})

    def gone(self, key: GangKey) -> None:
        """Report that a gang has no members and no object any more."""
        self._conflicts.pop(key, None)
        self._for_first.pop(key, None)
        log.debug("gang gone", extra={"gang": key})

    def _on_first(self, view: GangView, reason: str, text: str, *, warning: bool) -> bool:
        """Record an Event on the first member that is not bound; else on a bound member, later.

        Returns False if there is no pod yet.
        """
        rows = np.concatenate([view.waiting, view.blocked, view.assumed, view.released])
        if not len(rows) and len(view.bound):
            self._bound.put(EventText(view.key, reason, text, warning))
            return True
        uid = self._state.pod_uid(int(rows[0])) if len(rows) else None
        return uid is not None and self._on_pod(uid, reason, text, warning=warning)

    def _on_pod(self, uid: PodUid, reason: str, text: str, *, warning: bool) -> bool:
        """Record an Event on a pod and on its controller."""
        pod = self._pods.get(uid)
        if pod is None:
            return False
        self._on_both(pod.ref, pod.controller, reason, text, warning=warning)
        return True

    def _on_both(
        self, ref: PodRef, owner: OwnerReference | None, reason: str, text: str, *, warning: bool
    ) -> None:
        self._record(ref, reason, text, action="Planning", warning=warning)
        if owner is not None:
            about = _controller(ref.namespace, owner)
            self._recorder.record(about, reason, text, action="Planning", warning=warning)

    def _warn(self, ref: PodRef, reason: str, text: str, *, action: str) -> None:
        self._record(ref, reason, text, action=action, warning=True)

    def _record(self, ref: PodRef, reason: str, text: str, *, action: str, warning: bool) -> None:
        about = Regarding.pod(ref.namespace, ref.name, ref.uid)
        self._recorder.record(about, reason, text, action=action, warning=warning)


def _numbers(decision: Wait | Reject) -> dict[str, object]:
    """Return the fields of a log line about a gang that does not fit, beside the reason."""
    if isinstance(decision, Reject):
        return {"why": decision.message}
    why, nearest = decision.explanation, decision.explanation.nearest
    found: dict[str, object] = {"nodes": why.nodes, "feasible": why.feasible, "remedy": why.remedy}
    if nearest is None:
        return found
    lacks = dict(nearest.short_of)
    return found | {
        "needed": nearest.needed,
        "nearest": nearest.domain,
        "fits": nearest.fits,
        "lacks": lacks,
    }


def _controller(namespace: str, owner: OwnerReference) -> Regarding:
    return Regarding(owner.api_version, owner.kind, namespace, owner.name, owner.uid)


def _ref(pod: Pod) -> PodRef:
    return PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
