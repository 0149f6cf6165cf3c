"""``GET /v1/story/…``: what happened to a pod or a gang in this replica, and what caused it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from extender.access.answercache import Busy
from extender.access.readerscope import scope_of
from extender.engine import Engine
from extender.readapi.answers import answer, limit_of, problem
from extender.readapi.redaction import Names, names_of, redacted
from extender.story.chain import AT_ONCE, About, chain, of_gang, of_pod
from extender.story.entries import Entry
from extender.timeslice import Pace
from muster.apiwire import story
from muster.apiwire.story import StoryAnswer, StoryEntry
from muster.cluster.ids import PodUid
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.translation.translate import pod_uid

KINDS: Final = frozenset({"pod", "gang"})


@dataclass(frozen=True, slots=True)
class _Asked:
    """The variables of the route's path."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(slots=True)
class StoryApi:
    """The one route. Entries are read a few at a time, like every list of the read API."""

    engine: Engine
    client: KubeClient
    pace: Pace

    def routes(self) -> list[web.RouteDef]:
        """Return the route."""
        return [web.get(f"{story.PATH}/{{kind}}/{{namespace}}/{{name}}", self.story)]

    async def story(self, request: web.Request) -> web.Response:
        """Return the entries about a pod or a gang, with their causes and what followed."""
        asked, limit = _Asked(**request.match_info), limit_of(request, story.MOST)
        if asked.kind not in KINDS:
            return problem(404, f"{asked.kind}: there are stories of pods and of gangs")
        entries = self.engine.story.entries()
        try:
            about, is_there = await self._about(entries, asked)
        except KubeError as error:
            return problem(502, f"{asked}: {error}")
        found = await self.pace.drive(chain(entries, about))
        if not found and not is_there:
            return problem(404, f"{asked}: does not exist, and did not lately")
        told = StoryAnswer(
            kind=asked.kind,
            name=f"{asked.namespace}/{asked.name}",
            most=self.engine.story.most,
            since=entries[0].at if entries else None,
            left_out=max(0, len(found) - limit),
            entries=await self._shown(entries, found[-limit:]),
        )
        try:
            shown = await redacted(told, scope_of(request), lambda: self._known(entries))
        except (KubeError, TimeoutError, Busy) as error:
            return problem(503, f"{asked}: the API server cannot be asked: {error}")
        return answer(shown)

    def _known(self, entries: Sequence[Entry]) -> Names:
        """Return every name of a gang or pod that an answer can have."""
        found = names_of(self.engine.state.gangs())
        for entry in entries:
            found |= names_of(entry.gangs)
            if entry.name:
                found[f"{entry.namespace}/{entry.name}"] = entry.namespace
        return found

    async def _about(self, entries: Sequence[Entry], asked: _Asked) -> tuple[About, bool]:
        """Return a filter for the entries, and whether there is such a pod or gang now.

        Raises ``KubeError``.
        """
        namespace, name = asked.namespace, asked.name
        if asked.kind == "pod":
            uids = await self._uids(entries, namespace, name)
            return of_pod(uids), bool(uids)
        keys = self.engine.state.gangs()
        is_there = any(key.partition("/")[2] == f"{namespace}/{name}" for key in keys)
        return of_gang(namespace, name), is_there

    async def _uids(self, entries: Sequence[Entry], namespace: str, name: str) -> frozenset[PodUid]:
        """Return the UIDs that entries have for a pod's name, else that of the present pod.

        Raises ``KubeError``.
        """
        found: set[PodUid] = set()
        for place, entry in enumerate(entries):
            if entry.name == name and entry.namespace == namespace:
                found.update(entry.uids)
            if not place % AT_ONCE:
                await self.pace.breathe()
        if found:
            return frozenset(found)
        uid = self.engine.state.find_pod(namespace, name)
        if uid is None:
            try:
                uid = pod_uid((await self.client.get_pod(namespace, name)).metadata.uid)
            except NotFound:
                return frozenset()
        return frozenset({uid})

    async def _shown(
        self, entries: Sequence[Entry], found: Sequence[Entry]
    ) -> tuple[StoryEntry, ...]:
        """Return entries in the wire format; the name of a pod may come from another entry."""
        names = await self._names(entries)
        shown = []
        for entry in found:
            shown.append(
                StoryEntry(
                    id=entry.id,
                    cause=_cause(entries, entry),
                    at=entry.at,
                    kind=entry.kind,
                    pod=names.get(entry.uids[0], "") if len(entry.uids) == 1 else "",
                    gangs=entry.gangs,
                    what=entry.what,
                )
            )
            await self.pace.breathe()
        return tuple(shown)

    async def _names(self, entries: Sequence[Entry]) -> dict[PodUid, str]:
        names: dict[PodUid, str] = {}
        for place, entry in enumerate(entries):
            if entry.name:
                names[entry.uids[0]] = f"{entry.namespace}/{entry.name}"
            if not place % AT_ONCE:
                await self.pace.breathe()
        return names


def _cause(entries: Sequence[Entry], entry: Entry) -> str:
    if not entry.cause:
        return ""
    place = entry.cause - entries[0].number
    return entries[place].id if place >= 0 else f"gone:{entry.cause}"
