"""The read-only HTTP API: status, gangs, and why one pod waits.

Rows are made a few at a time, and the event loop runs other tasks in between. So a list of ten
thousand gangs never delays ``filter``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from msgspec import UNSET
from msgspec.structs import replace

from extender.access.answercache import Busy
from extender.access.readerscope import OutOfSight, ReaderScope, scope_of
from extender.planning import hotspares, waitcauses
from extender.planning.planner import Planner
from extender.planning.promises.promisekeeper import ENDS_HELP
from extender.planning.waitcauses import HOPELESS, OVERSIZE
from extender.readapi import membernotes
from extender.readapi.answers import MAX_ROWS, answer, as_wire, limit_of, problem
from extender.readapi.drains import DrainApi
from extender.readapi.queues import QueueApi
from extender.readapi.redaction import Names, names_of, namespace_of, redacted
from extender.readapi.roomnotes import note_of
from extender.readapi.stories import KINDS, StoryApi
from extender.readapi.whatif import WhatIf
from extender.timeslice import Pace
from extender.watchover.census import Census
from extender.watchover.devicetroubles import DeviceWatch
from muster.apiwire import explain, gangs, status
from muster.apiwire.explain import Explanation
from muster.apiwire.gangs import GangRow
from muster.apiwire.status import Queue, Status
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.holds import Hold
from muster.decisions import roomtext
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.translation.translate import pod_uid
from muster.placement.decision import Wait
from muster.queueing.backfill import promisetext


@dataclass(slots=True)
class ReadApi:
    """Answers from the state and from the planner's last decision about each gang."""

    state: ClusterState
    planner: Planner
    client: KubeClient
    census: Census
    whatif: WhatIf
    stories: StoryApi
    queues: QueueApi
    drains: DrainApi
    #: returns whether the cluster is listed and this replica leads
    ready: Callable[[], bool]
    #: returns how many changes wait for the writer
    backlog: Callable[[], int]
    pace: Pace
    #: returns whether this replica leads
    leads: Callable[[], bool]
    #: returns since when a gang has run in part, ``None`` if it does not
    partial_since: Callable[[GangKey], float | None]
    #: returns why a released pod cannot bind, "" if it can
    trouble: Callable[[PodUid], str]
    #: returns a line for each pod that slipped past admission
    slipped: Callable[[], list[str]]
    devices: DeviceWatch

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get(status.PATH, self.status),
            web.get(gangs.PATH, self.gangs),
            web.get(f"{explain.PATH}/{{namespace}}/{{pod}}", self.explain),
            *self.whatif.routes(),
            *self.stories.routes(),
            *self.queues.routes(),
            *self.drains.routes(),
        ]

    async def status(self, _request: web.Request) -> web.Response:
        """Return the state of the extender in numbers."""
        await self.census.take()
        return answer(
            Status(
                cluster=self.state.name,
                ready=self.ready(),
                leader=self.leads(),
                generation=self.state.generation,
                nodes=int(self.state.snapshot().nodes.alive.sum()),
                gangs=dict(self.census.gangs),
                holds=dict(self.census.holds),
                waiting_for_room=self.planner.waiting,
                queue=self._queue(),
                problems=tuple(self._problems()),
                watch_backlog=self.backlog(),
            )
        )

    def _queue(self) -> Queue:
        """Return the waiting gangs and pods by cause, and since when the oldest gang waits."""
        queue = self.census.queue
        waiting = {why: count for why, count in queue.gangs.items() if count}
        return Queue(waiting, {why: queue.pods[why] for why in waiting}, queue.oldest)

    def _problems(self) -> list[str]:
        """Return one line for each problem that needs a person, with what to do."""
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
        return len(self.devices.gangs())

    async def gangs(self, request: web.Request) -> web.Response:
        """Return a row per gang; ``?phase=``, ``?namespace=`` and ``?limit=`` restrict them."""
        wanted = request.query.get("phase", "").lower()
        namespace = request.query.get("namespace", "")
        limit, scope = limit_of(request, MAX_ROWS), scope_of(request)
        keys = sorted(self.state.gangs())
        if namespace:
            keys = [key for key in keys if namespace_of(key) == namespace]
        elif scope is not None:
            try:
                keys = await _visible(keys, scope)
            except (KubeError, TimeoutError, Busy) as error:
                return problem(503, f"gangs: the API server cannot be asked: {error}")
        rows: list[GangRow] = []
        for key in keys:
            if len(rows) >= limit:
                break
            view = self.state.gang(key)
            if view is not None and wanted in ("", view.phase.value.lower()):
                rows.append(self._row(view))
            await self.pace.breathe()
        return answer(rows)

    async def explain(self, request: web.Request) -> web.Response:
        """Return why a pod waits, or on which node it is planned; ``?kind=gang``: why a gang does.

        Names of gangs that the reader may not see are left out.
        """
        namespace, name = request.match_info["namespace"], request.match_info["pod"]
        kind = request.query.get("kind", "pod")
        if kind not in KINDS:
            return problem(400, f"kind: {kind!r}; allowed are pod and gang")
        try:
            ask = self._pod if kind == "pod" else self._gang
            found = await ask(namespace, name)
            if found is None:
                return problem(404, f"{kind} {namespace}/{name}: does not exist")
            return answer(await redacted(found, scope_of(request), self._names))
        except KubeError as error:
            return problem(502, f"{kind} {namespace}/{name}: {error}")
        except (TimeoutError, Busy) as error:
            return problem(503, f"{kind} {namespace}/{name}: no answer from the API server {error}")

    async def _pod(self, namespace: str, name: str) -> Explanation | None:
        """Explain a pod, None where there is none. Raises ``KubeError``."""
        uid, asked = self.state.find_pod(namespace, name), Explanation(f"{namespace}/{name}")
        if uid is not None:
            return await self._explained(asked, uid)
        try:
            pod = await self.client.get_pod(namespace, name)
        except NotFound:
            return None
        asked = replace(asked, node=pod.spec.node_name)
        if self.state.gang_of(pod_uid(pod.metadata.uid)) is not None:
            return await self._explained(asked, pod_uid(pod.metadata.uid))
        text = "not managed by Muster: it asks for no accelerator and names no gang"
        return replace(asked, lines=(text,))

    async def _gang(self, namespace: str, name: str) -> Explanation | None:
        """Explain a gang, None where there is none; of several dialects one that waits."""
        keys = [key for key in self.state.gangs() if key.split("/", 1)[1] == f"{namespace}/{name}"]
        views = [view for view in map(self.state.gang, keys) if view is not None]
        if not views:
            return None
        view = max(views, key=lambda each: len(each.waiting))
        asked = Explanation("", gang=self._row(view))
        if len(view.waiting) or len(view.blocked):
            return await self._with_ways(self._waiting(asked, view), view.key)
        counts = {"placed": len(view.assumed) + len(view.released), "bound": len(view.bound)}
        shown = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        text = f"{view.key}: no member waits; {shown or 'all are finished'}"
        return replace(asked, lines=(text, *self.drains.lines(view.key)))

    def _names(self) -> Names:
        return names_of(self.state.gangs())

    async def _explained(self, asked: Explanation, uid: PodUid) -> Explanation:
        """Explain a pod; for a gang that waits for room, add what would make it fit."""
        return await self._with_ways(self._of(asked, uid), self.state.gang_of(uid))

    async def _with_ways(self, found: Explanation, key: GangKey | None) -> Explanation:
        decision = None if key is None else self.planner.decisions.get(key)
        if found.decision is UNSET or not isinstance(decision, Wait):
            return found
        found = await self._with_room(found, decision)
        ways, lines = await self.whatif.ways(decision)
        return replace(found, lines=(*found.lines, *lines), ways=ways)

    async def _with_room(self, found: Explanation, wait: Wait) -> Explanation:
        """Add who gives way to a gang, or would if it were the first of its queues that waits."""
        maker = self.planner.rooms
        if maker is None or wait.reason not in ENDS_HELP:
            return found
        known = maker.answers.get(wait.gang)
        answer = known or await self.whatif.room(wait.gang)
        if answer is None:
            return found
        first = () if known else ("if it were the first that waits now:",)
        lines = (*found.lines, *first, *roomtext.lines_of(answer))
        return replace(found, lines=lines, room=note_of(answer))

    def _of(self, asked: Explanation, uid: PodUid) -> Explanation:
        key = self.state.gang_of(uid)
        view = None if key is None else self.state.gang(key)
        if view is None:
            return replace(asked, lines=("not managed by Muster",))
        hold, asked = self.state.hold(uid), replace(asked, gang=self._row(view))
        return self._waiting(asked, view) if hold is None else self._placed(asked, uid, hold, view)

    def _placed(self, asked: Explanation, uid: PodUid, hold: Hold, view: GangView) -> Explanation:
        """Explain a pod that has a node."""
        where = f"{hold.state.value}: node {hold.node}"
        if why := self.trouble(uid):
            where = f"released to node {hold.node} and cannot bind: {why}"
        snapshot = self.state.snapshot()
        return replace(
            asked,
            state=hold.state.value,
            node=hold.node,
            spares=hold.spares,
            devices=dict(hold.devices),
            rank=hold.rank,
            lines=(
                where,
                *membernotes.node_lines(snapshot, hold),
                *membernotes.device_lines(self.state.device_troubles(hold.node), uid),
                *hotspares.lines(snapshot, view),
            ),
        )

    def _start(self, key: GangKey) -> tuple[str, ...]:
        """Return when a gang starts, in a sentence, as far as that is known."""
        promise = self.planner.promises.of(key)
        return () if promise is None else (promisetext.text_of(promise),)

    def _waiting(self, asked: Explanation, view: GangView) -> Explanation:
        """Explain a gang that has no plan."""
        decision = None if view.spec is None else self.planner.decisions.get(view.key)
        lines = waitcauses.lines(view, decision, self.whatif.engine.clock())
        return replace(
            asked,
            lines=(
                *lines,
                *self._start(view.key),
                *self.queues.summaries.past_use(view),
                *membernotes.partial_lines(view),
            ),
            decision=UNSET if decision is None else as_wire(decision),
        )

    def _row(self, view: GangView) -> GangRow:
        spec = view.written or view.spec
        return GangRow(
            gang=view.key,
            phase=view.phase.value,
            priority=view.priority,
            queue=view.queue,
            min=None if spec is None else spec.min_count,
            size=None if spec is None else spec.size,
            waiting=len(view.waiting),
            blocked=len(view.blocked),
            assumed=len(view.assumed),
            released=len(view.released),
            bound=len(view.bound),
            leaving=len(view.leaving),
            finished=len(view.finished),
            standby=len(view.standby),
            submitted_at=view.submitted_at,
            skips=view.skips,
            reason=view.last_reason,
            partial_since=self.partial_since(view.key),
            unhealthy=self.devices.unhealthy(view.key),
        )


async def _visible(keys: list[GangKey], scope: ReaderScope) -> list[GangKey]:
    """Return the keys that the reader sees; raises ``OutOfSight`` where that is none.

    Raises ``KubeError`` or ``Busy`` if the API server cannot be asked.
    """
    seen = await scope.visible(sorted({namespace_of(key) for key in keys}))
    if not seen:
        raise OutOfSight(
            f"gangs: user {scope.user.username!r} may not: needs RBAC to get nonResourceURL "
            "/v1/gangs, or to list pods in a namespace that has gangs; ask for one namespace "
            "with ?namespace= (-n)"
        )
    return [key for key in keys if namespace_of(key) in seen]
