"""What a node has to say when a test waits for something in vain."""

from collections.abc import Iterable
from typing import Final

import aiohttp

from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.controlplane.programs import Program

EVENTS: Final = "/api/v1/namespaces/default/events"
_EVENTS_TOLD: Final = 12


async def account(api: Api, said: str, programs: Iterable[Program]) -> str:
    """Return what was said, the last Events of the namespace "default", and the ends of logs."""
    logs = (f"── {program.name}\n{program.log_tail()}" for program in programs)
    return "\n".join((said, *await _events(api), *logs))


async def _events(api: Api) -> list[str]:
    try:
        found: list[JSON] = (await api.get(EVENTS))["items"]
    except (ApiFailed, aiohttp.ClientError, TimeoutError) as failed:
        return [f"no Events: {failed}"]
    found.sort(key=_when)
    return [
        f"{_when(each)} {each['involvedObject'].get('name')} {each['reason']}: {each['message']}"
        for each in found[-_EVENTS_TOLD:]
    ]


def _when(event: JSON) -> str:
    return str(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"])
