"""The read-only HTTP API: status, gangs, and why one pod waits.

Rows are made a few at a time with the event loop given back in between, so that a list
of ten thousand gangs never delays ``filter``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast

import orjson
from aiohttp import web

from extender.planning import hotspares, waitcauses
from extender.planning.planner import Planner
from extender.planning.waitcauses import HOPELESS, OVERSIZE
from extender.readapi import membernotes
from extender.readapi.whatif import WhatIf
from extender.timeslice import Pace
from extender.watchover.census import Census
from extender.watchover.devicetroubles import DeviceWatch
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.translation.translate import pod_uid
from muster.placement.decision import Wait
from muster.placement.reasons import text as explain

MAX_ROWS: Final = 10_000
STATES: Final = (
    "waiting", "blocked", "assumed", "released", "bound", "leaving", "finished", "standby",
)  # fmt: skip


@dataclass(slots=True)
class ReadApi:
    """Answers from the state and from what the planner last said about each gang."""

    state: ClusterState
    planner: Planner
    client: KubeClient
    census: Census
    whatif: WhatIf
    ready: Callable[[], bool]
    backlog: Callable[[], int]
    pace: Pace
    leads: Callable[[], bool] = lambda: True
    partial_since: Callable[[GangKey], float | None] = lambda _key: None
    trouble: Callable[[PodUid], str] = lambda _uid: ""
    slipped: Callable[[], list[str]] = list
    devices: DeviceWatch | None = None

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get("/v1/status", self.status),
            web.get("/v1/gangs", self.gangs),
            web.get("/v1/explain/{namespace}/{pod}", self.explain),
            *self.whatif.routes(),
        ]

    async def status(self, _request: web.Request) -> web.Response:
        """Return what the extender knows, in numbers."""
        await self.census.take()
        return _json(
            {
                "cluster": self.state.name,
                "ready": self.ready(),
                "leader": self.leads(),
                "generation": self.state.generation,
                "nodes": int(self.state.snapshot().nodes.alive.sum()),
                "gangs": self.census.gangs,
                "holds": self.census.holds,
                "waiting_for_room": self.planner.waiting,
                "queue": self._queue(),
                "problems": self._problems(),
                "watch_backlog": self.backlog(),
            }
        )

    def _queue(self) -> dict[str, object]:
        """Return what waits: gangs and pods by cause, and since when the oldest gang does."""
        queue = self.census.queue
        gangs = {why: count for why, count in queue.gangs.items() if count}
        pods = {why: queue.pods[why] for why in gangs}
        return {"gangs": gangs, "pods": pods, "oldest_submitted_at": queue.oldest}

    def _problems(self) -> list[str]:
        """Return what somebody has to look at, a line each, with what to do."""
        partial = sum(self.partial_since(key) is not None for key in self.state.gangs())
        waiting = self.census.queue.gangs.items()
        never = sum(count for why, count in waiting if why in HOPELESS)
        oversize = sum(count for why, count in waiting if why in OVERSIZE)
        found = [
            (partial, "run with too few members bound: muster gangs names them"),
            (never, "can never be placed as written: muster explain says what to change"),
            (oversize, "fit no nodes there are, even empty: muster explain says what they lack"),
            (self._ailing(), "have members with unhealthy devices: muster gangs names them"),
        ]
        return [f"{count} gangs {text}" for count, text in found if count] + self.slipped()

    def _ailing(self) -> int:
        return 0 if self.devices is None else len(self.devices.gangs())

    async def gangs(self, request: web.Request) -> web.Response:
        """Return a row per gang; ``?phase=`` and ``?namespace=`` narrow, ``?limit=`` cuts off."""
        wanted = request.query.get("phase", "").lower()
        namespace = request.query.get("namespace", "")
        limit = _limit(request.query.get("limit", str(MAX_ROWS)))
        rows: list[dict[str, object]] = []
        for key in sorted(self.state.gangs()):
            if len(rows) >= limit:
                break
            view = None if namespace and _namespace(key) != namespace else self.state.gang(key)
            if view is not None and wanted in ("", view.phase.value.lower()):
                rows.append(self._row(view))
            await self.pace.breathe()
        return _json(rows)

    async def explain(self, request: web.Request) -> web.Response:
        """Return why a pod waits, or where it goes."""
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        uid = self.state.find_pod(namespace, name)
        if uid is not None:
            return _json({"pod": f"{namespace}/{name}", **await self._explained(uid)})
        try:
            pod = await self.client.get_pod(namespace, name)
        except NotFound:
            return _problem(404, f"pod {namespace}/{name}: does not exist")
        except KubeError as error:
            return _problem(502, f"pod {namespace}/{name}: {error}")
        found = {"pod": f"{namespace}/{name}", "node": pod.spec.node_name}
        if self.state.gang_of(pod_uid(pod.metadata.uid)) is not None:
            return _json({**found, **await self._explained(pod_uid(pod.metadata.uid))})
        text = "not managed by Muster: it asks for no accelerator and names no gang"
        return _json({**found, "lines": [text]})

    async def _explained(self, uid: PodUid) -> dict[str, object]:
        """Return what is known, and for a gang that waits for room what would make it fit."""
        answer, key = self._of(uid), self.state.gang_of(uid)
        decision = None if key is None else self.planner.decisions.get(key)
        if "decision" not in answer or not isinstance(decision, Wait):
            return answer
        found, lines = await self.whatif.ways(decision)
        told = answer["lines"]
        answer["lines"] = [*told, *lines] if isinstance(told, list) else told
        return answer | {"ways": found}

    def _of(self, uid: PodUid) -> dict[str, object]:
        key = self.state.gang_of(uid)
        view = None if key is None else self.state.gang(key)
        if view is None:
            return {"lines": ["not managed by Muster"]}
        hold = self.state.hold(uid)
        answer: dict[str, object] = {"gang": self._row(view)}
        if hold is not None:
            answer |= {
                "state": hold.state.value,
                "node": hold.node,
                "spares": list(hold.spares),
                "devices": {node: list(names) for node, names in hold.devices.items()},
                "rank": hold.rank,
                "lines": [f"{hold.state.value}: node {hold.node}"],
            }
            if why := self.trouble(uid):
                answer["lines"] = [f"released to node {hold.node} and cannot bind: {why}"]
            told, snapshot = cast("list[str]", answer["lines"]), self.state.snapshot()
            answer["lines"] = (
                told
                + membernotes.node_lines(snapshot, hold)
                + membernotes.device_lines(self.state.device_troubles(hold.node), uid)
                + hotspares.lines(snapshot, view)
            )
            return answer
        return answer | self._waiting(view)

    def _row(self, view: GangView) -> dict[str, object]:
        unhealthy = 0 if self.devices is None else self.devices.unhealthy(view.key)
        more = {"partial_since": self.partial_since(view.key), "unhealthy": unhealthy}
        return _row(view) | more

    def _waiting(self, view: GangView) -> dict[str, object]:
        """Explain a gang that has no plan."""
        decision = None if view.spec is None else self.planner.decisions.get(view.key)
        lines = waitcauses.lines(view, decision, self.whatif.engine.clock())
        told = lines + membernotes.torso_lines(view)
        answer: dict[str, object] = {"lines": told}
        return answer if decision is None else answer | {"decision": explain.to_dict(decision)}


def _row(view: GangView) -> dict[str, object]:
    spec = view.spec
    return {
        "gang": view.key,
        "phase": view.phase.value,
        "priority": view.priority,
        "queue": view.queue,
        "min": None if spec is None else spec.min_count,
        "size": None if spec is None else spec.size,
        **{state: len(getattr(view, state)) for state in STATES},
        "submitted_at": view.submitted_at,
        "skips": view.skips,
        "reason": view.last_reason,
    }


def _namespace(key: GangKey) -> str:
    return key.split("/", 2)[1]


def _limit(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= MAX_ROWS:
        raise web.HTTPBadRequest(text=f"limit: {text!r} is not a number from 1 to {MAX_ROWS}")
    return int(text)


def _json(body: object) -> web.Response:
    return web.Response(body=orjson.dumps(body), content_type="application/json")


def _problem(status: int, text: str) -> web.Response:
    return web.Response(
        body=orjson.dumps({"error": text}), status=status, content_type="application/json"
    )
