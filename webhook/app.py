"""The HTTP side: reviews in, reviews out, health and metrics.

``POST /mutate`` and ``POST /validate`` take admission reviews; ``GET /livez``, ``/readyz``
(``?verbose``) and ``/metrics`` are for the kubelet and Prometheus. Replies to what is no
review are plain text with a 4xx; the API server treats them as a failed call, and the
failurePolicy decides.

A defect of ours must not become an outage of the cluster: an exception in a mutation is
logged with its traceback, counted and answered "allowed, unchanged" with a warning. In a
validation it is a 500, because silence would let through what the rules exist to stop.
Neither objects nor patches are logged: pods carry secrets in their environment.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from time import perf_counter
from typing import Final

from aiohttp import web

from injection.subject import Facts
from observability.health import Health
from observability.metrics import CONTENT_TYPE, render
from webhook.admit import admit_mutating, admit_validating
from webhook.alike import Alike, Answer, Known
from webhook.errors import MalformedReview
from webhook.injecting import Early, Mode
from webhook.manifests import MUTATE_PATH, VALIDATE_PATH
from webhook.metrics import Metrics
from webhook.mutate import NOTHING, Mutation
from webhook.review import AdmissionRequest, Verdict, parse, respond
from webhook.validate import Rules
from workloads.managed import Policy

SMALL_BYTES: Final = 64 * 1024  # also what a connection buffers before its request is read
LARGE_AT_ONCE: Final = 8  # bodies of up to the limit that are in memory at one time
_DEFECT: Final = "Muster's webhook failed on this pod and left it unchanged; see its log"
_log = logging.getLogger(__name__)

Owners = Callable[[AdmissionRequest, Facts], Awaitable[Facts]]


class Server:
    """The handlers with what they need; ``app`` is the application to run.

    ``facts``: what injection works from at this moment, ``None`` where nothing is injected.
    ``owners``: adds the owners of the request's pod to them.
    """

    def __init__(
        self,
        policy: Policy,
        rules: Rules,
        metrics: Metrics,
        health: Health,
        facts: Callable[[], Facts | Early | None] = lambda: None,
        *,
        owners: Owners | None = None,
        body_limit_bytes: int,
        body_seconds: float,
        mode: Mode = Mode.ON,
    ) -> None:
        self._policy = policy
        self._rules = rules
        self._metrics = metrics
        self._health = health
        self._facts = facts
        self._mode = mode
        self._owners = owners
        self._body_seconds = body_seconds
        self._alike = Alike(self._admit)
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self.app = web.Application(client_max_size=body_limit_bytes)
        self.app.router.add_post(MUTATE_PATH, self._review(MUTATE_PATH, self._mutate))
        self.app.router.add_post(VALIDATE_PATH, self._review(VALIDATE_PATH, self._validate))
        self.app.router.add_get("/livez", self._livez)
        self.app.router.add_get("/readyz", self._readyz)
        self.app.router.add_get("/metrics", self._metrics_page)

    def _review(
        self, path: str, decide: Callable[[AdmissionRequest], Awaitable[Verdict]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return the handler of one path: read, decide, answer, count."""

        async def handle(http: web.Request) -> web.Response:
            started = perf_counter()
            try:
                request = parse(await self._body(http))
                verdict = await decide(request)
            except MalformedReview as error:
                self._count(path, "malformed")
                return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")
            outcome = _outcome(verdict)
            self._count(path, outcome)
            self._metrics.answered(path, request.operation, outcome, perf_counter() - started)
            reply = respond(request.uid, verdict)
            return web.Response(body=reply, content_type="application/json")

        return handle

    async def _body(self, http: web.Request) -> bytes:
        """Return the body; a client that is too slow with it is told so (408).

        Large ones are read a few at a time and wait for their turn within the same time, so slow
        clients cannot fill the memory; those of common size are in a buffer already.
        """
        if http.content.is_eof():
            return await http.read()  # all of it is here: nothing to wait for
        try:
            async with asyncio.timeout(self._body_seconds):
                if http.content_length is not None and http.content_length <= SMALL_BYTES:
                    return await http.read()
                async with self._large:
                    return await http.read()
        except TimeoutError as error:
            raise web.HTTPRequestTimeout from error

    async def _mutate(self, request: AdmissionRequest) -> Verdict:
        try:
            facts = self._facts()
            if isinstance(facts, Facts) and self._owners is not None:
                facts = await self._owners(request, facts)
            verdict, done = self._alike.answer(request, facts)
        except MalformedReview:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the pod must get through: see above
            _log.exception("mutation failed", extra={"uid": request.uid})
            return Verdict(warnings=(_DEFECT,))
        if done is not NOTHING:
            self._note(request, done)
        return _told(request, verdict)

    def _admit(self, request: AdmissionRequest, facts: Known) -> Answer:
        return admit_mutating(request, self._policy, self._rules, facts, self._mode)

    async def _validate(self, request: AdmissionRequest) -> Verdict:
        return _told(request, admit_validating(request, self._rules))

    def _note(self, request: AdmissionRequest, done: Mutation) -> None:
        if done.gated:
            self._metrics.gated.inc()
        if done.overridden is not None:
            self._metrics.overridden(done.overridden)
        if done.rewritten:
            self._metrics.rewritten.labels(done.rewritten).inc()
        if done.injected is not None:
            self._metrics.injected(done.injected)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("mutated", extra={**_subject(request), "rewritten": done.rewritten})

    def _count(self, path: str, outcome: str) -> None:
        self._metrics.reviewed(path, outcome)

    async def _livez(self, _http: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, http: web.Request) -> web.Response:
        problems = self._health.problems()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        text = self._health.report() if problems or "verbose" in http.query else "ok\n"
        return web.Response(status=status, text=text)

    async def _metrics_page(self, _http: web.Request) -> web.Response:
        body = render(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def _outcome(verdict: Verdict) -> str:
    if not verdict.allowed:
        return "denied"
    return "patched" if verdict.operations else "unchanged"


def _told(request: AdmissionRequest, verdict: Verdict) -> Verdict:
    if not verdict.allowed:
        _log.info("refused", extra={**_subject(request), "reason": verdict.message})
    return verdict


def _subject(request: AdmissionRequest) -> dict[str, str]:
    """Return what a log line says about a request: who and which object, never its content."""
    return {
        "operation": request.operation,
        "resource": request.resource.resource,
        "namespace": request.namespace,
        "object": request.name,
        "user": request.user_info.username,
    }
