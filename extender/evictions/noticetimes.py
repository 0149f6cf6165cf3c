"""Since when a node says that it leaves: the taint's ``timeAdded``, or the condition's last change.

The model has neither: they differ from node to node, and no other part needs them. So they are
read once for each node with a notice whose time counts. Not every controller writes them.
"""

import logging
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.names import NOTICE
from muster.kube.resources import Resource

log = logging.getLogger(__name__)


class TimedTaint(wire.Wire, frozen=True):
    """core/v1 Taint, as far as it is read."""

    key: str = ""
    time_added: datetime | None = None


class TimedCondition(wire.Wire, frozen=True):
    """core/v1 NodeCondition, as far as it is read."""

    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class TaintedSpec(wire.Wire, frozen=True):
    """core/v1 NodeSpec, as far as it is read."""

    taints: tuple[TimedTaint, ...] = ()


class ConditionedStatus(wire.Wire, frozen=True):
    """core/v1 NodeStatus, as far as it is read."""

    conditions: tuple[TimedCondition, ...] = ()


class NoticingNode(wire.Wire, frozen=True):
    """core/v1 Node, as far as it is read."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: TaintedSpec = TaintedSpec()
    status: ConditionedStatus = ConditionedStatus()


_NODES: Final = Resource("", "v1", "nodes", NoticingNode, namespaced=False)


async def times_of(client: KubeClient, node: str) -> Mapping[str, float]:
    """Return since when each taint and condition of a node is there, by the key in the model.

    Seconds since the epoch; those without a time are left out. None where it cannot be read.
    """
    try:
        found = await client.get(_NODES, node)
    except KubeError as error:
        log.warning("times of notices not read", extra={"node": node, "error": str(error)})
        return {}
    return dict(_times(found))


def _times(node: NoticingNode) -> Iterator[tuple[str, float]]:
    for taint in node.spec.taints:
        if taint.time_added is not None:
            yield taint.key, taint.time_added.timestamp()
    for one in node.status.conditions:
        if one.status == "True" and one.last_transition_time is not None:
            yield NOTICE + one.type, one.last_transition_time.timestamp()
