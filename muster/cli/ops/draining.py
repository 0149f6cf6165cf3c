"""Marks nodes as drained, and takes that back: the taint and the cordon in one PATCH.

::

    GET node ─► PATCH spec.unschedulable and spec.taints, if it still has that version ─► 409: again

The taints of a node are one list, so the version is tested: a taint that somebody else sets in
between is not lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import Conflict
from muster.kube.http.auth import Auth
from muster.kube.names import DRAIN
from muster.kube.resources import Resource
from muster.kube.wire import ObjectMeta, Wire

_ATTEMPTS: Final = 5
_EFFECT: Final = "NoSchedule"


class DrainableSpec(Wire, frozen=True):
    """core/v1 NodeSpec, as far as it is changed; taints with all of their fields."""

    unschedulable: bool = False
    taints: tuple[dict[str, Any], ...] = ()


class DrainableNode(Wire, frozen=True):
    """core/v1 Node, as far as it is changed."""

    metadata: ObjectMeta = ObjectMeta()
    spec: DrainableSpec = msgspec.field(default_factory=DrainableSpec)


_NODES: Final = Resource("", "v1", "nodes", DrainableNode, namespaced=False)


async def request(auth: Auth, nodes: Sequence[str], deadline: float | None) -> None:
    """Have gangs leave nodes. Raises ``KubeError``, for the first node before any is changed.

    ``deadline``: from when on gangs end without another place, seconds since the epoch.
    """
    value = "" if deadline is None else str(int(deadline))
    taint = {"key": DRAIN, "value": value, "effect": _EFFECT}
    await _change(auth, nodes, [taint], cordoned=True)


async def cancel(auth: Auth, nodes: Sequence[str]) -> None:
    """Have gangs stay, and let new pods onto the nodes. Raises ``KubeError`` as ``request``."""
    await _change(auth, nodes, [], cordoned=False)


async def _change(
    auth: Auth, nodes: Sequence[str], taints: Sequence[dict[str, Any]], *, cordoned: bool
) -> None:
    async with KubeClient(auth) as client:
        for name in nodes:
            await client.get(_NODES, name)
        for name in nodes:
            await _change_one(client, name, taints, cordoned=cordoned)


async def _change_one(
    client: KubeClient, name: str, taints: Sequence[dict[str, Any]], *, cordoned: bool
) -> None:
    for attempt in range(_ATTEMPTS):
        node = await client.get(_NODES, name)
        kept = [taint for taint in node.spec.taints if taint.get("key") != DRAIN]
        body = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"unschedulable": cordoned or None, "taints": [*kept, *taints] or None},
        }
        try:
            await client.patch(_NODES, name, body, content_type=MERGE)
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return
