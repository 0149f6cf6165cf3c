"""``POST /v1/whatif`` and ``GET /v1/defrag/…``: plans for a supposed cluster.

::

    request ─► one at a time, a few may wait (else 503) ─► scratch snapshot ─► plan, in slices
                                                             nothing is written, held or evicted

Both only read. On a large cluster they may compute for seconds. So their number is limited, they
run in slices between which ``filter`` is answered, and they end after ``PATIENCE_S``.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
from aiohttp import web

from extender.engine import Engine
from extender.errors import TooLarge
from extender.planning.planner import Planner
from extender.planning.roommaker import RoomMaker
from extender.readapi.answers import answer, as_wire, problem
from extender.readapi.roomnotes import note_of
from extender.readapi.suppositions import SupposedQuestion, Supposer, pods_named
from extender.reporting.boundgangs import pods_on
from extender.timeslice import Pace
from muster.apiwire import defrag as defragwire
from muster.apiwire import whatif as whatifwire
from muster.apiwire.defrag import Defrag, PriceAnswer
from muster.apiwire.explain import Ways
from muster.apiwire.whatif import BODY_BYTES, WhatIfQuestion, Where, parse
from muster.apiwire.whatif import WhatIfAnswer as Answered
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.decisions import roomtext
from muster.decisions.answer import decide
from muster.decisions.roomplan import RoomAnswer, RoomPlan
from muster.decisions.suppositions import suppose
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError, NotFound
from muster.kube.translation.translate import pod_uid
from muster.placement.decision import Decision, Plan, Wait
from muster.placement.moves import remedies
from muster.placement.moves import text as movetext
from muster.placement.moves.proposals import Answer, Proposal, propose
from muster.placement.question import Question as Asking
from muster.placement.reasons import explanation as explain
from muster.workloads.managedpods import ManagedPolicy

PATIENCE_S: Final = 20.0  # for one answer; then the answer is that the question asks for too much
EXPLAIN_S: Final = 2.0  # for ``ways`` in an answer of explain
MOST_WAYS: Final = 256  # gangs with cached ways
WAITING: Final = 4  # questions that wait for the one that is being answered
MOST_DOMAINS: Final = 32  # named in an answer
NAMED_NODES: Final = 64  # nodes whose pods are looked up by name for a proposal


class Crowded(Exception):
    """Too many questions at once; try again."""


@dataclass(slots=True)
class WhatIfQueue:
    """Lets one computation run at a time, and a few others wait."""

    #: number of computations that run or wait
    waiting: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def __aenter__(self) -> None:
        """Wait for the turn; raises ``Crowded`` if too many wait already."""
        if self.waiting > WAITING:
            raise Crowded
        self.waiting += 1
        try:
            await self._turn.acquire()
        except BaseException:
            self.waiting -= 1
            raise

    async def __aexit__(self, *_: object) -> None:
        """Let the next one have its turn."""
        self.waiting -= 1
        self._turn.release()


@dataclass(slots=True)
class WhatIf:
    """The two routes."""

    engine: Engine
    planner: Planner
    #: says who would give way
    rooms: RoomMaker
    client: KubeClient
    policy: ManagedPolicy
    #: returns whether the cluster is listed and this replica leads
    ready: Callable[[], bool]
    pace: Pace
    turns: WhatIfQueue = field(default_factory=WhatIfQueue)
    _known: dict[GangKey, tuple[tuple[int, int], Ways, list[str]]] = field(default_factory=dict)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.post(whatifwire.PATH, self.whatif),
            web.get(f"{defragwire.PATH}/{{namespace}}/{{gang}}", self.defrag),
        ]

    async def whatif(self, request: web.Request) -> web.Response:
        """Answer a question about a supposed cluster or gang."""
        try:
            question = parse(await _body(request))
            names = pods_named(question)
        except ValueError as error:
            return problem(400, str(error))
        except TooLarge as error:
            return problem(413, str(error))
        return await self._in_turn(lambda: self._suppose(question, names))

    async def defrag(self, request: web.Request) -> web.Response:
        """Propose moves that make room for a gang."""
        text = f"{request.match_info['namespace']}/{request.match_info['gang']}"
        return await self._in_turn(lambda: self._defrag(text))

    async def _in_turn(self, work: Callable[[], Awaitable[Defrag | Answered]]) -> web.Response:
        if not self.ready():
            return problem(503, "the cluster is still being listed, or another replica leads")
        try:
            async with asyncio.timeout(PATIENCE_S), self.turns:
                return answer(await work())
        except Crowded:
            return problem(503, "others are being answered; try again in a moment")
        except TimeoutError:
            return problem(503, f"no answer within {PATIENCE_S:g} s; ask about less")
        except (ValueError, NotFound) as error:
            return problem(404 if isinstance(error, NotFound) else 400, str(error))
        except KubeError as error:
            return problem(502, f"the API server: {error}")

    # --- what if ------------------------------------------------------------------------

    async def _suppose(self, question: WhatIfQuestion, names: tuple[str, ...]) -> Answered:
        rows = {name: await self._row(name) for name in names}
        snapshot = self.engine.state.snapshot()
        supposed = Supposer(snapshot, self.policy, rows).read(question)
        there = suppose(snapshot, supposed.supposition)
        await self.pace.breathe()
        decisions = list[tuple[Snapshot, Decision]]()
        for key in supposed.gangs:
            decision = await self.pace.drive(decide(there, self._asking(key)))
            decisions.append((there, decision))
            if not isinstance(decision, Plan):
                break
            if key != supposed.gangs[-1]:
                there = _with_plan(there, decision)
        found = _answered(supposed, decisions)
        if found.fits or not question.preempt:
            return found
        there, last = decisions[-1]
        return _with_room(found, await self._room(there, last.gang))

    async def _room(self, snapshot: Snapshot, key: GangKey) -> RoomAnswer:
        view = snapshot.gang(key)
        if view is None:
            raise ValueError(f"gang {key}: it is gone")
        return await self.rooms.answer(view, self._asking(key), snapshot)

    def _asking(self, key: GangKey) -> Asking:
        return self.planner.question(key)

    async def _row(self, name: str) -> int:
        """Return the row of a pod by name; raises ``ValueError`` if the pod does not exist."""
        namespace, _, pod = name.partition("/")
        uid = self.engine.state.find_pod(namespace, pod)
        if uid is None:
            try:
                found = await self.client.get_pod(namespace, pod)
            except NotFound:
                raise ValueError(f"without.pods: pod {name}: does not exist") from None
            uid = pod_uid(found.metadata.uid)
        row = self.engine.state.pod_row(uid)
        if row is None:
            raise ValueError(f"without.pods: pod {name}: was not seen yet; try again in a moment")
        return row

    # --- moves --------------------------------------------------------------------------

    async def _defrag(self, text: str) -> Defrag:
        snapshot = self.engine.state.snapshot()
        key = Supposer(snapshot, self.policy, {}).key(text)
        found = await self.proposal(snapshot, key)
        names = await self._names(snapshot, found)
        moves = msgspec.convert(movetext.to_dict(snapshot, found, names), Defrag)
        return msgspec.structs.replace(moves, lines=tuple(movetext.lines(snapshot, found, names)))

    async def proposal(self, snapshot: Snapshot, key: GangKey) -> Answer:
        """Return the moves that make room for a gang."""
        return await self.pace.drive(propose(snapshot, self._asking(key)))

    async def ways(self, wait: Wait) -> tuple[Ways | None, list[str]]:
        """Return what would make a waiting gang fit, and the same as text.

        The result is cached until the cluster changes. The computation ends after ``EXPLAIN_S``, so
        that it does not delay the rest of ``explain``.
        """
        snapshot, key = self.engine.state.snapshot(), wait.gang
        known = self._known.get(key)
        if known is not None and known[0] == (snapshot.generation, wait.generation):
            return known[1], known[2]
        view = snapshot.gang(key)
        question = self._asking(key)
        try:
            async with asyncio.timeout(EXPLAIN_S), self.turns:
                found = await self.pace.drive(remedies.ways(snapshot, question, wait))
        except (Crowded, TimeoutError):
            return None, ["what would make it fit takes longer to find: ask muster defrag"]
        lines = remedies.lines(key, None if view is None else view.spec, found)
        if len(self._known) >= MOST_WAYS:
            self._known.clear()
        ways = _ways(snapshot, found)
        self._known[key] = ((snapshot.generation, wait.generation), ways, lines)
        return ways, lines

    async def room(self, key: GangKey) -> RoomAnswer | None:
        """Return who would give way to a gang that waits; ``None``: no answer in ``EXPLAIN_S``."""
        try:
            async with asyncio.timeout(EXPLAIN_S), self.turns:
                return await self._room(self.engine.state.snapshot(), key)
        except (Crowded, TimeoutError, ValueError):
            return None

    async def _names(self, snapshot: Snapshot, answer: Answer) -> dict[int, str]:
        """Look up the names of the moved pods; the model has no names of bound pods."""
        if not isinstance(answer, Proposal):
            return {}
        rows = {snapshot.pods.uid(move.pod): move.pod for move in answer.moves}
        nodes = dict.fromkeys(snapshot.nodes.name(move.source) for move in answer.moves)
        found: dict[int, str] = {}
        for node in list(nodes)[:NAMED_NODES]:
            for pod in await pods_on(self.client, node):
                row = rows.get(pod_uid(pod.metadata.uid))
                if row is not None:
                    found[row] = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return found


def _ways(snapshot: Snapshot, found: remedies.Remedies) -> Ways:
    moves = None
    if found.moves is not None:
        moves = msgspec.convert(movetext.to_dict(snapshot, found.moves, {})["price"], PriceAnswer)
    return Ways(
        fewer=found.fewer,
        wider=found.wider,
        ends=found.ends,
        moves=moves,
        relaxes=found.relaxes_at is not None,
    )


def _with_room(found: Answered, room: RoomAnswer) -> Answered:
    """Return the answer about a gang that does not fit, with who would give way to it."""
    lines = roomtext.lines_of(room)
    if isinstance(room, RoomPlan):
        lines += ["then " + line for line in explain.render(room.plan)[:1]]
    return msgspec.structs.replace(found, lines=(*found.lines, *lines), room=note_of(room))


def _with_plan(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """Return the cluster with a supposed gang in its place, for those that come after it."""
    return snapshot.overlay(moved=list(zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True)))


def _answered(
    supposed: SupposedQuestion, decisions: Sequence[tuple[Snapshot, Decision]]
) -> Answered:
    """Return the answer about all gangs; its decision is the first one that is no plan."""
    snapshot, last = decisions[-1]
    lines = [line for _, decision in decisions for line in explain.render(decision)]
    fits = isinstance(last, Plan)
    return Answered(
        supposed=supposed.lines,
        fits=fits,
        decision=as_wire(last),
        lines=tuple(dict.fromkeys(lines)),
        where=_where(snapshot, [plan for _, plan in decisions if isinstance(plan, Plan)])
        if fits
        else (),
    )


def _where(snapshot: Snapshot, plans: Sequence[Plan]) -> tuple[Where, ...]:
    """Return the domains one level above the hosts that plans use, most members first."""
    topology, nodes = snapshot.topology, np.concatenate([plan.nodes for plan in plans])
    level = max(len(topology.levels) - 2, 0)
    domains, counts = np.unique(topology.domain(level)[nodes], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_DOMAINS].tolist()
    hosts = [
        len(np.unique(nodes[topology.domain(level)[nodes] == domain]))
        for domain in domains[order].tolist()
    ]
    return tuple(
        Where(
            domain="/".join(filter(None, topology.path(level, int(domains[at])))) or "no label",
            members=int(counts[at]),
            nodes=hosting,
        )
        for at, hosting in zip(order, hosts, strict=True)
    )


async def _body(request: web.Request) -> bytes:
    if (request.content_length or 0) > BODY_BYTES:
        raise TooLarge(f"body: more than the {BODY_BYTES} bytes that are allowed")
    raw = await request.read()  # by the gate already, where the request is signed
    if len(raw) > BODY_BYTES:
        raise TooLarge(f"body: more than the {BODY_BYTES} bytes that are allowed")
    return raw
