"""Lines about members on nodes that have lost resources, and about gangs that run in part.

When a device fails, the kubelet removes it from the node's allocatable, but the pods on the node
stay. Then more is used than the node has. No pod is evicted for that: a pod may not use the failed
device, and if it does, its own supervisor notices first. The reaction is left to its controller.
"""

from collections.abc import Iterable
from typing import assert_never
from uuid import UUID

from muster.cluster.handlers.devicetroubles import DeviceTrouble, TroubleKind
from muster.cluster.ids import PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.holds import Hold
from muster.queueing.order import begun


def node_lines(snapshot: Snapshot, hold: Hold) -> list[str]:
    """Return a line for each problem of a pod's node: it is gone, or has too few resources."""
    row = snapshot.nodes.row(hold.node)
    if row is None or not snapshot.nodes.alive[row]:
        return [f"node {hold.node} is gone"] if hold.node else []
    return _short(snapshot, row, hold.node)


def device_lines(troubles: Iterable[DeviceTrouble], uid: PodUid) -> list[str]:
    """Return a line for each problem with a pod's devices."""
    return [_device_line(trouble) for trouble in troubles if trouble.uid == uid]


def _device_line(trouble: DeviceTrouble) -> str:
    device = f"device {trouble.device} on node {trouble.node}"
    match trouble.kind:
        case TroubleKind.UNHEALTHY:
            why = f": {trouble.reason}" if trouble.reason else ""
            return f"its {device} is unhealthy{why}"
        case TroubleKind.TAKEN:
            holder = UUID(bytes=bytes(trouble.holder or bytes(16)))
            return (
                f"its plan names {device}, which the kubelet gave to the pod with UID {holder}: it "
                "gets another one, if there is any"
            )
        case TroubleKind.OTHERWISE:
            return f"the kubelet gave it {device}, which is not what its plan names"
        case _:
            assert_never(trouble.kind)


def _short(snapshot: Snapshot, row: int, node: str) -> list[str]:
    nodes, found = snapshot.nodes, []
    for name in nodes.resources:
        free = int(nodes.free(name)[row])
        if free < 0:
            has = int(nodes.allocatable(name)[row])
            found.append(
                f"node {node} has {has} of {name} and {has - free} are used: it became less under "
                "its pods; none is evicted for that, no pod is planned there, and the successor "
                "of one that goes is placed where there is room"
            )
    return found


def partial_lines(view: GangView) -> list[str]:
    """Return how the bound members of a gang restrict the places of the waiting ones."""
    spec = view.spec
    if spec is None or not begun(view) or not len(view.bound):
        return []
    level = spec.slice_level or spec.required_level
    confined = f", in the {level} of those" if level else ", as near to those as there is room"
    end = (
        "evicted as a whole if that lasts (muster.dev/repair: restart)"
        if spec.restarts
        else "left as it is meanwhile (muster.dev/repair: wait)"
    )
    return [
        (
            f"{len(view.bound)} members stay where they are; the others go beside them{confined}; "
            f"the gang is {end}"
        )
    ]
