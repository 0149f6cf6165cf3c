"""``GET /v1/drains``: the nodes that gangs leave; for readers who may see the whole cluster."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from extender.engine import Engine
from extender.evictions.drains import NodeDrains
from extender.readapi.answers import answer, problem
from extender.readapi.whatif import PATIENCE_S, Crowded, WhatIfQueue
from muster.apiwire import drains
from muster.apiwire.drains import DrainedNode, DrainRow, DrainsAnswer
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.decisions.drainplan import DrainedGang
from muster.queueing.drains.leavingnodes import LeavingNode

SUPPOSED: Final = "it is supposed to be drained"


@dataclass(slots=True)
class DrainApi:
    """Answers from the last look; for nodes that are named the gangs are looked at anew."""

    engine: Engine
    drains: NodeDrains
    #: shared with what-if: one question at a time
    turns: WhatIfQueue

    def routes(self) -> list[web.RouteDef]:
        """Return the route."""
        return [web.get(drains.PATH, self.show)]

    def lines(self, gang: GangKey) -> tuple[str, ...]:
        """Return what a gang that has to leave nodes waits for, as a line; else none."""
        why = self.drains.waits.get(gang)
        if why is None:
            return ()
        waits = f"it waits: {why}" if why else "it ends now"
        return (f"it has to leave nodes that are drained (muster drain): {waits}",)

    async def show(self, request: web.Request) -> web.Response:
        """Return the nodes that leave; with ``?node=`` what would end if these were drained."""
        names = sorted(set(request.query.getall("node", [])))
        if len(names) > drains.MOST_NODES:
            return problem(400, f"node: {len(names)} names; allowed are {drains.MOST_NODES}")
        if not names:
            it = self.drains
            return answer(_answer(it, it.nodes, it.gangs, it.waits))
        snapshot = self.engine.state.snapshot()
        missing = [name for name in names if not _is_there(snapshot, name)]
        if missing:
            return problem(404, f"node {missing[0]!r}: there is none; kubectl get nodes lists them")
        try:
            async with asyncio.timeout(PATIENCE_S), self.turns:
                return answer(await self._supposed(snapshot, names))
        except Crowded:
            return problem(503, "others are being answered; try again in a moment")
        except TimeoutError:
            return problem(503, f"no answer within {PATIENCE_S:g} s; name fewer nodes")

    async def _supposed(self, snapshot: Snapshot, names: Sequence[str]) -> DrainsAnswer:
        known = {node.name: node for node in self.drains.nodes}
        for name in names:
            row = snapshot.nodes.row(name)
            if row is not None:
                known.setdefault(name, LeavingNode(name, row, SUPPOSED, None))
        gangs = await self.drains.plan(snapshot, list(known.values()))
        waits = {one.gang: one.fixed or one.lacks for one in gangs}
        return _answer(self.drains, [known[name] for name in names], gangs, waits)


def _is_there(snapshot: Snapshot, name: str) -> bool:
    row = snapshot.nodes.row(name)
    return row is not None and bool(snapshot.nodes.alive[row])


def _answer(
    it: NodeDrains,
    nodes: Sequence[LeavingNode],
    gangs: Sequence[DrainedGang],
    waits: Mapping[GangKey, str],
) -> DrainsAnswer:
    rows: dict[str, list[DrainRow]] = {node.name: [] for node in nodes}
    for one in gangs:
        why = waits.get(one.gang, "")
        row = DrainRow(one.gang, len(one.rows), one.is_whole, one.cost.lost, why)
        for node in one.nodes:
            if node.name in rows:
                rows[node.name].append(row)
    shown = (DrainedNode(n.name, n.why, n.until, tuple(rows[n.name])) for n in nodes)
    return DrainsAnswer(it.settings.enabled, tuple(shown))
