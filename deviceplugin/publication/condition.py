"""The node condition that says whether its devices are well, as the API server takes it."""

from typing import Final

from deviceplugin.health.reports import CONDITION, Condition
from muster.kube import wire

MOST_CHARACTERS: Final = 1024  # of a message


def condition_body(node: wire.Node, wanted: Condition, *, now: str) -> dict[str, object] | None:
    """Return a strategic merge patch of the status, ``None`` where it says so already.

    ``now``: RFC 3339. The time of the transition is that of the last change of status; the API
    server merges conditions by their type and keeps what a patch does not name.
    """
    status = "Unknown" if wanted.healthy is None else str(wanted.healthy)
    message = wanted.message[:MOST_CHARACTERS]
    known = next((each for each in node.status.conditions if each.type == CONDITION), None)
    told = None if known is None else (known.status, known.reason, known.message)
    if told == (status, wanted.reason, message):
        return None
    body = {
        "type": CONDITION, "status": status, "reason": wanted.reason, "message": message,
        "lastHeartbeatTime": now,
    }  # fmt: skip
    if known is None or known.status != status:
        body["lastTransitionTime"] = now
    return {"status": {"conditions": [body]}}
