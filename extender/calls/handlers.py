"""HTTP around the verbs: read the body, answer, count.

kube-scheduler treats every status but 200 as a failure and then ignores the body. ``filter`` and
``bind`` have an error field, so an error of the extender is sent there, with status 200.
``prioritize`` and ``preempt`` have none, so they answer 503. For every verb, a malformed body is
answered with 400 and a body above the limit with 413. The text names the problem and is never a
traceback. Nothing is changed in any of these cases.

A replica that does not lead answers 503 to every call and closes the connection. So the next call
of kube-scheduler opens a new connection, which the Service routes to the leader.

Replies have a Content-Length. Go's client decodes a chunked reply without reading it to the end,
and would then open a new connection for every pod.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import orjson
from aiohttp import web

from extender.calls import wire
from extender.calls.binding import Binder
from extender.calls.body import Body
from extender.calls.plansearch import PlanSearch
from extender.calls.verbs import Labels, Verbs, plan_hit
from extender.errors import MalformedCall, NamespaceUnseen, NotReady, TooLarge
from extender.metrics import ExtenderMetrics, RequestOutcome, Verb

log = logging.getLogger(__name__)

Answerer = Callable[[Body], Awaitable[bytes]]
LabelsOf = Callable[[str], Awaitable[Labels]]
Answer = TypeVar("Answer")
Handler = Callable[[web.Request], Awaitable[web.Response]]
_JSON = "application/json"


@dataclass(slots=True)
class Handlers:
    """The HTTP handlers, one coroutine per verb."""

    verbs: Verbs
    binder: Binder
    #: reads the labels of a namespace from the API server; raises ``NotReady``
    labels_of: LabelsOf
    metrics: ExtenderMetrics
    #: returns whether this replica leads
    leads: Callable[[], bool]

    def routes(self) -> list[web.RouteDef]:
        """Return the four routes; all handle errors in the same way."""
        return [
            web.post(f"/v1/extender/{verb}", self._guarded(verb, handler))
            for verb, handler in (
                (Verb.FILTER, self._filter),
                (Verb.PRIORITIZE, self._prioritize),
                (Verb.PREEMPT, self._preempt),
                (Verb.BIND, self._bind),
            )
        ]

    async def _filter(self, body: Body) -> bytes:
        search = PlanSearch(self.verbs.planned)
        async for piece in body:
            search.feed(piece)
        node = search.result()
        if node is None:
            reply = await self._judged(self.verbs.filter, body.whole())
        else:
            reply = plan_hit(node)
        if reply.answer is None:
            raise _ErrorReply(reply.body)
        self.metrics.answers[reply.answer].inc()
        return reply.body

    async def _prioritize(self, body: Body) -> bytes:
        return self.verbs.prioritize(await body.read())

    async def _preempt(self, body: Body) -> bytes:
        return await self._judged(self.verbs.preempt, await body.read())

    async def _judged(self, verb: Callable[[bytes, Labels | None], Answer], body: bytes) -> Answer:
        """Answer; if the watch has not shown the pod's namespace yet, read its labels first."""
        try:
            return verb(body, None)
        except NamespaceUnseen as unseen:
            return verb(body, await self.labels_of(unseen.namespace))

    async def _bind(self, body: Body) -> bytes:
        error = await self.binder.bind(wire.read_binding(await body.read()))
        if error:
            raise _ErrorReply(wire.binding_result(error))
        return wire.binding_result()

    def _guarded(self, verb: Verb, answer: Answerer) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            began = time.perf_counter()
            if not self.leads():
                self.metrics.requests[verb, RequestOutcome.ERROR].observe(0.0)
                return _standing_by()
            outcome, response = await _respond(verb, answer, Body(request))
            self.metrics.requests[verb, outcome].observe(time.perf_counter() - began)
            return response

        return handle


class _ErrorReply(Exception):
    """An error that is sent in the error field of a reply; it carries the whole reply."""

    def __init__(self, reply: bytes) -> None:
        super().__init__()
        self.reply = reply


async def _respond(verb: Verb, answer: Answerer, body: Body) -> tuple[RequestOutcome, web.Response]:
    try:
        reply = await answer(body)
    except _ErrorReply as error:
        return RequestOutcome.ERROR, _reply(error.reply)
    except MalformedCall as error:
        log.warning("request refused", extra={"verb": verb.value, "error": str(error)})
        return RequestOutcome.REFUSED, _reply(_error(str(error)), status=400)
    except TooLarge as error:
        return RequestOutcome.REFUSED, _reply(_error(str(error)), status=413)
    except NotReady as error:
        return RequestOutcome.ERROR, _reply(_error(str(error)), status=503)
    return RequestOutcome.OK, _reply(reply)


def _standing_by() -> web.Response:
    response = _reply(_error(wire.Reason.STANDBY), status=503)
    response.force_close()
    return response


def _reply(body: bytes, status: int = 200) -> web.Response:
    return web.Response(body=body, status=status, content_type=_JSON)


def _error(text: str) -> bytes:
    return orjson.dumps({"Error": text})
