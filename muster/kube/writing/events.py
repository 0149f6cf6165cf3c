"""Events on objects (events.k8s.io/v1), for people who read ``kubectl describe``.

Recording never waits and never fails: an occurrence is counted, and a separate task
writes. Occurrences of the same reason on the same object form a series: for the first one an
Event is created at once, later ones only raise its count, at most once per ``SERIES_S``. An
Event's text cannot be changed, so a series with a new text is begun again, at the same pace.

Memory is bounded by ``limit`` series. When all of them wait to be written, new ones are
dropped and counted: pods must not wait for Events.
"""

import asyncio
import itertools
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NoReturn, Protocol

from muster.kube import wire
from muster.kube.errors import KubeError, NotFound
from muster.kube.resources import Resource
from muster.observability.printable import printable

SERIES_S: Final = 30.0  # between two writes of one series
PACE_S: Final = 1.0  # between two rounds of writing
ROUND_LIMIT: Final = 50  # writes in a round, so at most 50 a second
_NOTE_LIMIT: Final = 1024  # characters; events.k8s.io/v1 noteLengthLimit
_INSTANCE_LIMIT: Final = 128  # characters; of reportingInstance
_NAME_LIMIT: Final = 230  # characters of the object's name that fit before our suffix
_MERGE: Final = "application/merge-patch+json"


class EventObject(wire.Wire, frozen=True):
    """events.k8s.io/v1 Event, of which only the metadata is ever read back."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()


EVENTS: Final = Resource("events.k8s.io", "v1", "events", EventObject)


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    #: "" for an object that is being created
    uid: str

    @property
    def identity(self) -> str:
        """Return what tells the object from all others."""
        return self.uid or f"{self.api_version}/{self.kind}/{self.namespace}/{self.name}"

    @classmethod
    def pod(cls, namespace: str, name: str, uid: str) -> "Regarding":
        """Return the reference to a pod."""
        return cls("v1", "Pod", namespace, name, uid)


class EventClient(Protocol):
    """What is needed of ``KubeClient``."""

    async def create(
        self,
        resource: Resource[EventObject],
        body: Mapping[str, object],
        *,
        namespace: str | None = None,
    ) -> EventObject:
        """See ``KubeClient``."""
        ...

    async def patch(
        self,
        resource: Resource[EventObject],
        name: str,
        body: Mapping[str, object],
        *,
        namespace: str | None = None,
        content_type: str = _MERGE,
    ) -> wire.PartialObject:
        """See ``KubeClient``."""
        ...


@dataclass(slots=True)
class _Series:
    """Occurrences of one reason on one object."""

    regarding: Regarding
    reason: str
    action: str
    warning: bool
    note: str = ""
    count: int = 0
    last: float = 0.0  # epoch seconds of the latest occurrence
    name: str = ""  # of the Event that exists, "" for none
    written_note: str = ""
    written_count: int = 0
    earlier: int = 0  # occurrences that belong to Events before the present one
    written_at: float = 0.0  # seconds of the steady clock

    @property
    def waits(self) -> bool:
        """Return whether there is something that has not been written."""
        return self.count > self.written_count

    def due(self, now: float) -> bool:
        """Return whether it may be written now."""
        return self.waits and (not self.name or now - self.written_at >= SERIES_S)


_Key = tuple[str, str, str]


class EventRecorder:
    """Counts occurrences; ``run`` writes them. For one event loop."""

    def __init__(
        self,
        client: EventClient,
        *,
        controller: str,
        instance: str,
        limit: int = 4096,
        wanted: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Report as ``controller`` (like ``muster.dev/extender``), from the pod ``instance``.

        ``wanted`` returns whether occurrences count now; without it all do. On a standby none
        should, because the leader reports the same ones.
        ``clock`` (epoch seconds) dates what is written, ``steady`` measures the time between
        writes: a clock that is set back by hours must not silence a series for hours.
        """
        self._client = client
        self._controller = controller
        self._instance = instance[:_INSTANCE_LIMIT]
        self._limit = limit
        self._wanted = wanted
        self._clock = clock
        self._steady = steady
        self._sleep = sleep
        # By object and reason, the longest untouched first. A series is in one of the two, so that
        # it is found without a search through all of them.
        self._waiting: OrderedDict[_Key, _Series] = OrderedDict()
        self._written: OrderedDict[_Key, _Series] = OrderedDict()
        self._number = itertools.count()
        self.dropped = 0  # occurrences there was no room for
        self.failed = 0  # writes that failed
        self.written = 0

    def record(
        self, regarding: Regarding, reason: str, note: str, *, action: str, warning: bool = False
    ) -> None:
        """Count one occurrence. ``reason`` and ``action``: CamelCase words of a fixed set."""
        if self._wanted is not None and not self._wanted():
            return
        key = (regarding.identity, reason, action)
        series = self._waiting.get(key) or self._written.pop(key, None)
        if series is None:
            if not self._make_room():
                self.dropped += 1
                return
            series = _Series(regarding, reason, action, warning)
        self._waiting[key] = series
        self._waiting.move_to_end(key)
        series.count += 1
        series.note = printable(note)[:_NOTE_LIMIT]
        series.last = self._clock()

    async def run(self) -> NoReturn:
        """Write until cancelled."""
        while True:
            await self.flush()
            await self._sleep(PACE_S)

    async def flush(self) -> int:
        """Write what is due, the longest untouched first; return how many writes were tried."""
        now = self._steady()
        found = ((key, series) for key, series in self._waiting.items() if series.due(now))
        due = list(itertools.islice(found, ROUND_LIMIT))
        for key, series in due:
            await self._write(series, now)
            if not series.waits:
                self._written[key] = self._waiting.pop(key)
        return len(due)

    def _make_room(self) -> bool:
        """Forget a written series if one more is too many; return whether there is room then."""
        if len(self._waiting) + len(self._written) < self._limit:
            return True
        if self._written:
            self._written.popitem(last=False)
        return len(self._waiting) < self._limit

    async def _write(self, series: _Series, now: float) -> None:
        """Write one series; if that fails it is not tried again before it has grown."""
        count, note = series.count, series.note
        series.written_at = now
        try:
            if not series.name or note != series.written_note:
                await self._create(series, note, count)
            else:
                await self._raise_count(series, note, count)
            self.written += 1
        except KubeError:
            self.failed += 1
        series.written_count = count
        series.written_note = note

    async def _create(self, series: _Series, note: str, count: int) -> None:
        series.earlier = series.written_count
        body = self._event(series, note)
        if count - series.earlier > 1:
            body["series"] = _observed(series, count)
        namespace = series.regarding.namespace or "default"
        made = await self._client.create(EVENTS, body, namespace=namespace)
        series.name = made.metadata.name

    async def _raise_count(self, series: _Series, note: str, count: int) -> None:
        body = {"series": _observed(series, count)}
        namespace = series.regarding.namespace or "default"
        try:
            await self._client.patch(
                EVENTS, series.name, body, namespace=namespace, content_type=_MERGE
            )
        except NotFound:  # the API server deletes Events after an hour
            await self._create(series, note, count)

    def _event(self, series: _Series, note: str) -> dict[str, object]:
        about = series.regarding
        suffix = f"{_suffix(series.last)}{next(self._number):x}"
        return {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {
                "name": f"{about.name[:_NAME_LIMIT]}.{suffix}",
                "namespace": about.namespace or "default",
            },
            "eventTime": _micro_time(series.last),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": series.action,
            "reason": series.reason,
            "type": "Warning" if series.warning else "Normal",
            "note": note,
            "regarding": {
                "apiVersion": about.api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
        }


def _observed(series: _Series, count: int) -> dict[str, object]:
    """Return an EventSeries (its count starts at 2)."""
    return {"count": count - series.earlier, "lastObservedTime": _micro_time(series.last)}


def _suffix(moment: float) -> str:
    """Return a moment in hexadecimal microseconds, as client-go ends Event names in time."""
    return f"{int(moment * 1e6):x}"


def _micro_time(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
