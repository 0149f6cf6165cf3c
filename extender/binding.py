"""The ``bind`` verb: one Binding, with the pod's UID and the plan's annotation.

The API server merges a Binding's annotations into the pod in the same write that sets
``spec.nodeName``, with the UID as precondition, so there is no half state. The reply may
be lost and kube-scheduler may ask again, so a pod that is already bound there is a
success. On any failure the plan is kept: the pod comes back after kube-scheduler's
back-off and is bound then.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from cluster.ids import PodUid
from cluster.ledger import Hold
from cluster.state import ClusterState
from extender.note import note_of
from extender.verbs import IsManaged
from extender.wire import BindingArgs, Reason
from kube.client import KubeClient
from kube.errors import APIError, Conflict, NotFound
from kube.translate import pod_uid
from kube.wire import Pod

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Binder:
    """Creates Bindings; commits nothing in the state, the watch will tell."""

    state: ClusterState
    client: KubeClient
    is_managed: IsManaged
    ready: Callable[[], bool]

    async def bind(self, args: BindingArgs) -> str:
        """Bind a pod; return "" or the error text for the wire."""
        if not self.ready():
            return Reason.NOT_READY
        uid = pod_uid(args.pod_uid)
        hold = self.state.hold(uid)
        try:
            if hold is None:
                return await self._bind_unplanned(uid, args)
            return await self._bind_planned(hold, args)
        except APIError as error:
            log.warning("bind failed", extra={"pod": _name(args), "error": str(error)})
            return f"pod {_name(args)}: binding to node {args.node}: {error}"

    async def _bind_planned(self, hold: Hold, args: BindingArgs) -> str:
        if args.node not in (hold.node, *hold.spares):
            return Reason.ELSEWHERE
        return await self._create(args, note_of(hold))

    async def _bind_unplanned(self, uid: PodUid, args: BindingArgs) -> str:
        """Bind a pod that is not ours. One the watch has not shown yet is read first."""
        if self.state.pod_row(uid) is not None:
            managed = self.state.gang_of(uid) is not None
        else:
            managed = self.is_managed(await self._read(args))
        return Reason.WAITING if managed else await self._create(args, None)

    async def _create(self, args: BindingArgs, note) -> str:
        try:
            await self.client.bind_pod(args.pod_namespace, args.pod_name, uid=args.pod_uid, node=args.node, note=note)
        except Conflict:
            pod = await self._read(args)
            if pod.metadata.uid == args.pod_uid and pod.spec.node_name == args.node:
                return ""
            raise
        return ""

    async def _read(self, args: BindingArgs) -> Pod:
        return await self.client.get_pod(args.pod_namespace, args.pod_name)


def _name(args: BindingArgs) -> str:
    return f"{args.pod_namespace}/{args.pod_name}"
