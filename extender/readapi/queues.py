"""The queues in the read-only API; only for readers who may see the whole cluster."""

from dataclasses import dataclass

from aiohttp import web

from extender.queues.summaries import QueueSummaries
from extender.readapi.answers import answer, problem
from extender.timeslice import Pace
from muster.apiwire import queues
from muster.apiwire.queues import QueueRow


@dataclass(slots=True)
class QueueApi:
    """Answers from the summaries, a few rows at a time."""

    summaries: QueueSummaries
    pace: Pace

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.get(queues.PATH, self.queues),
            web.get(f"{queues.PATH}/{{queue:.+}}", self.queue),
        ]

    async def queues(self, _request: web.Request) -> web.Response:
        """Return a row per queue, each behind the one above it."""
        rows: list[QueueRow] = []
        for row in self.summaries.rows():
            rows.append(row)
            await self.pace.breathe()
        return answer(rows)

    async def queue(self, request: web.Request) -> web.Response:
        """Return one queue and who waits in it."""
        text = request.match_info["queue"]
        names = self.summaries.find(text)
        if len(names) > 1:
            return problem(409, f"queue {text}: means {', '.join(sorted(names))}: name one of them")
        found = self.summaries.detail(names[0]) if names else None
        if found is None:
            return problem(404, f"queue {text}: does not exist; muster queues lists all")
        return answer(found)
