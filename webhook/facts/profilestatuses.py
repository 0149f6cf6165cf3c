"""The condition ``Ready`` in the status of profiles, as every replica would write it.

::

    State ─► says the status so already? ──yes──► nothing
                    │ no
                    ▼
             PATCH …/status, one per object and PACE_S at most

All replicas see the same objects and come to the same words, so the first to write spares the
others the call, and no replica has to lead. The pace is for the time of an upgrade: replicas of two
releases may come to different words: they must not answer each other at once for ever.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NoReturn, Protocol

from muster.kube import wire
from muster.kube.client import MERGE
from muster.kube.errors import Conflict, KubeError, NotFound
from muster.kube.resources import Resource
from webhook.facts.profiles import RESOURCE_OF, Condition, ProfileObject, ProfileState

READY: Final = "Ready"
PACE_S: Final = 5.0  # between two writes to one object
_ROUND_S: Final = 0.2  # between two looks at what waits
_MESSAGE_LIMIT: Final = 32_768  # characters; meta/v1 Condition
_Key = tuple[str, str]  # kind and name
_log = logging.getLogger(__name__)


class StatusClient(Protocol):
    """What is needed of ``KubeClient``."""

    async def patch(
        self,
        resource: Resource[ProfileObject],
        name: str,
        body: Mapping[str, object],
        *,
        content_type: str = MERGE,
        subresource: str = "",
    ) -> wire.PartialObject:
        """See ``KubeClient``."""
        ...


class ProfileStatusWriter:
    """``want`` takes what should stand there, ``run`` writes it. For one event loop."""

    def __init__(
        self,
        client: StatusClient,
        *,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Date conditions by ``clock`` (epoch seconds), space writes by ``steady``."""
        self._client = client
        self._clock = clock
        self._steady = steady
        self._sleep = sleep
        self._waiting: dict[_Key, ProfileState] = {}
        self._written: dict[_Key, float] = {}

    def want(self, states: Iterable[ProfileState]) -> None:
        """Take how the profiles fare now; of those that are not among them nothing is wanted."""
        states = tuple(states)
        self._waiting = {_key(state): state for state in states if not _is_said(state)}
        there = set(map(_key, states))
        self._written = {key: at for key, at in self._written.items() if key in there}

    async def run(self) -> NoReturn:
        """Write for ever."""
        while True:
            await self.write_due()
            await self._sleep(_ROUND_S)

    async def write_due(self) -> None:
        """Write what waits and may be written now; what fails waits for its next turn."""
        for key, state in list(self._waiting.items()):
            now = self._steady()
            if now - self._written.get(key, -PACE_S) < PACE_S:
                continue
            self._written[key] = now
            if await self._write(state) and self._waiting.get(key) is state:
                del self._waiting[key]

    async def _write(self, state: ProfileState) -> bool:
        """Write one condition; return whether there is nothing left to do about it."""
        # Another version of the object is another question: its state will be wanted anew.
        meta = {"uid": state.meta.uid, "resourceVersion": state.meta.resource_version}
        body = {"metadata": meta, "status": {"conditions": self._conditions(state)}}
        resource, name = RESOURCE_OF[state.kind], state.meta.name
        try:
            await self._client.patch(resource, name, body, content_type=MERGE, subresource="status")
        except (NotFound, Conflict):  # its watch brings what it is now
            return True
        except KubeError as error:
            what = f"{state.kind} {name}"
            _log.warning("status not written", extra={"object": what, "error": str(error)})
            return False
        return True

    def _conditions(self, state: ProfileState) -> list[dict[str, object]]:
        """Return all conditions of the status, with ours in its place."""
        before = next((said for said in state.said if said.type == READY), None)
        status = _status(state)
        now = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        stays = before is not None and before.status == status
        ours = Condition(
            READY,
            status,
            state.reason,
            state.message[:_MESSAGE_LIMIT],
            state.meta.generation,
            before.last_transition_time if stays and before is not None else now,
        )
        others = (said for said in state.said if said.type != READY)
        return [_json(said) for said in (*others, ours)]


def _key(state: ProfileState) -> _Key:
    return state.kind, state.meta.name


def _status(state: ProfileState) -> str:
    return "True" if state.ready else "False"


def _is_said(state: ProfileState) -> bool:
    """Return whether the status says so already, of this generation."""
    wanted = (
        READY,
        _status(state),
        state.reason,
        state.message[:_MESSAGE_LIMIT],
        state.meta.generation,
    )
    return any(
        (said.type, said.status, said.reason, said.message, said.observed_generation) == wanted
        for said in state.said
    )


def _json(said: Condition) -> dict[str, object]:
    return {
        "type": said.type,
        "status": said.status,
        "reason": said.reason,
        "message": said.message,
        "observedGeneration": said.observed_generation,
        "lastTransitionTime": said.last_transition_time,
    }
