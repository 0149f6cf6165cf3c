"""The node condition ``MusterDevicesHealthy`` as a patch for the API server."""

from typing import Final

from deviceplugin.health.reports import CONDITION, Condition
from muster.kube import wire

MOST_CHARACTERS: Final = 1024  # of a message


def condition_body(node: wire.Node, wanted: Condition, *, now: str) -> dict[str, object] | None:
    """Return a strategic merge patch of the status; ``None`` where the Node shows it already.

    ``now``: RFC 3339. The transition time is that of the last change of status. The API server
    merges conditions by type, and leaves the ones that a patch does not name.
    """
    status = "Unknown" if wanted.healthy is None else str(wanted.healthy)
    message = wanted.message[:MOST_CHARACTERS]
    known = next((each for each in node.status.conditions if each.type == CONDITION), None)
    shown = None if known is None else (known.status, known.reason, known.message)
    if shown == (status, wanted.reason, message):
        return None
    body = {
        "type": CONDITION, "status": status, "reason": wanted.reason, "message": message,
        "lastHeartbeatTime": now,
    }  # fmt: skip
    if known is None or known.status != status:
        body["lastTransitionTime"] = now
    return {"status": {"conditions": [body]}}
