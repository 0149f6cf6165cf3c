"""Why gangs were given up: read from the API server, and returned as sentences.

A phase does not wait for ever (``patience``). Whoever reads that some of its gangs were given up
asks why, and by then the cluster is gone.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from loadtest.fourphase.site.site import PODS
from loadtest.fourphase.site.watches import Seen, Watching
from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.client.wirejson import items_at, text_at
from loadtest.testbed.standins.persistentclient import LOST

NAMED: Final = 5  # gangs, of each sort: the others are like them, or show in the logs


async def lacking(
    api: Api, watching: Watching, waiting: Sequence[str], leaving: Sequence[str]
) -> list[str]:
    """Return a sentence for each of the first gangs that wait, and one for those that leave.

    ``waiting``: names of attempts that are not whole. ``leaving``: names of attempts that should
    be gone, and still have pods.
    """
    lines = [await _gang(api, watching, watching.gangs[name]) for name in waiting[:NAMED]]
    if others := len(waiting) - len(lines):
        lines.append(f"and {others:,} more")
    still = [f"{name} ({watching.gangs[name].present:,} pods)" for name in leaving[:NAMED]]
    if still:
        lines.append(f"{len(leaving):,} gangs have still to leave: {', '.join(still)}")
    return lines


async def _gang(api: Api, watching: Watching, seen: Seen) -> str:
    line = f"gang {seen.name}: {seen.bound} of {seen.size} pods bound, {seen.present} there"
    if seen.lost:
        line += f", {len(seen.lost)} lost"
    pod = next(watching.unbound(seen), None)
    return line if pod is None else f"{line}; {pod}: {await _pod(api, pod)}"


async def _pod(api: Api, name: str) -> str:
    try:
        pod = await api.get(f"{PODS}/{name}")
    except (ApiFailed, *LOST) as failed:
        return str(failed) or type(failed).__name__  # an API server that is away may be the reason
    return "; ".join(_state(pod)) or "its status says nothing"


def _state(pod: JSON) -> Iterator[str]:
    """Yield what keeps a pod, as its object tells it."""
    if when := text_at(pod, "metadata", "deletionTimestamp"):
        yield f"is being deleted since {when}"
    if node := text_at(pod, "spec", "nodeName"):
        yield f"is on {node}, and no watch has reported that"
    for gate in items_at(pod, "spec", "schedulingGates"):
        yield f"waits at the gate {text_at(gate, 'name')}"
    for condition in items_at(pod, "status", "conditions"):
        if text_at(condition, "type") == "PodScheduled" and text_at(condition, "reason"):
            yield f"{text_at(condition, 'reason')}: {text_at(condition, 'message')}"
