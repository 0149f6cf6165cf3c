"""The ``bind`` verb: one Binding, with the pod's UID and the plan's annotation.

The API server merges a Binding's annotations into the pod in the same write that sets
``spec.nodeName``, with the UID as precondition. So no pod is bound without its plan. The reply may
be lost and kube-scheduler may call again, so a pod that is bound to that node already is a success.
After a failure the plan stays held: kube-scheduler tries the pod again after its back-off.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

from extender.calls.verbs import IsManaged, candidates
from extender.calls.wire import BindingArgs, Reason
from extender.planning.holding import PlanHolder
from muster.cluster.ids import PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.holds import Hold, HoldState
from muster.kube import names
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.translation.planannotation import encode_plan
from muster.kube.translation.translate import pod_uid
from muster.kube.writing.podwrites import (
    Bound,
    BoundElsewhere,
    PodRef,
    PodVanished,
    Unclear,
    WriteRefused,
    bind_pod,
)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Binder:
    """Creates Bindings. It does not change the state; the watch will show the binding."""

    state: ClusterState
    holding: PlanHolder
    client: KubeClient
    #: judges pods that the watch has not shown yet
    is_managed: IsManaged
    #: returns whether the cluster has been listed
    ready: Callable[[], bool]

    async def bind(self, args: BindingArgs) -> str:
        """Bind a pod; return "" or the error text for the wire."""
        if not self.ready():
            return Reason.NOT_READY
        uid = pod_uid(args.pod_uid)
        hold = self.state.hold(uid)
        if hold is not None and not self.holding.counts(hold):
            return Reason.WAITING
        if hold is None:
            error = await self._unplanned(uid, args)
        else:
            error = await self._planned(uid, hold, args)
        extra = {"pod": f"{args.pod_namespace}/{args.pod_name}", "node": args.node}
        if error:
            log.warning("bind failed", extra=extra | {"error": error})
        else:
            log.info("bound", extra=extra)
        return error

    async def _planned(self, uid: PodUid, hold: Hold, args: BindingArgs) -> str:
        if hold.state is HoldState.CONFIRMED:  # called again: the reply was lost
            return "" if hold.node == args.node else _bound_elsewhere(args, hold.node)
        if args.node not in candidates(hold):
            return Reason.ELSEWHERE
        if not self.state.takes(uid, args.node):
            return Reason.LOST
        return await self._create(args, {names.PLAN: encode_plan(hold.note())})

    async def _unplanned(self, uid: PodUid, args: BindingArgs) -> str:
        """Bind a pod that is not managed. A pod that the watch has not shown yet is read first."""
        if self.state.pod_row(uid) is not None:
            managed = self.state.gang_of(uid) is not None
        else:
            try:
                pod = await self.client.get_pod(args.pod_namespace, args.pod_name)
            except KubeError as error:
                return f"pod {args.pod_namespace}/{args.pod_name}: {error}"
            managed = self.is_managed(pod)
        return Reason.WAITING if managed else await self._create(args, {})

    async def _create(self, args: BindingArgs, annotations: Mapping[str, str]) -> str:
        pod = PodRef(args.pod_namespace, args.pod_name, args.pod_uid)
        outcome = await bind_pod(self.client, pod, args.node, annotations=annotations)
        match outcome:
            case Bound():
                return ""
            case BoundElsewhere(node):
                return _bound_elsewhere(args, node)
            case PodVanished():
                return f"pod {pod} of uid {pod.uid}: does not exist any more"
            case WriteRefused(message) | Unclear(message):
                return f"pod {pod}: binding to node {args.node}: {message}"
            case _ as unreachable:
                assert_never(unreachable)


def _bound_elsewhere(args: BindingArgs, node: str) -> str:
    pod = f"{args.pod_namespace}/{args.pod_name}"
    return f"pod {pod}: is bound to node {node} already, not to {args.node}"
