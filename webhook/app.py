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
from webhook import deadline as deadlines
from webhook.admit import admit_mutating, admit_validating
from webhook.alike import Alike, Answer, Known
from webhook.callers import Callers
from webhook.config import Limits
from webhook.door import busy
from webhook.errors import MalformedReview
from webhook.injecting import Early, Mode
from webhook.manifests import MUTATE_PATH, VALIDATE_PATH
from webhook.metrics import Metrics
from webhook.mutate import NOTHING, Mutation
from webhook.reading import Bodies, Shed
from webhook.review import AdmissionRequest, Verdict, parse, respond
from webhook.validate import Rules
from workloads.managed import Policy

_DEFECT: Final = "Muster's webhook failed on this pod and left it unchanged; see its log"
ANSWER_S: Final = 0.2  # kept of the caller's time for deciding and answering
_log = logging.getLogger(__name__)

Owners = Callable[[AdmissionRequest, Facts], Awaitable[Facts]]
Decide = Callable[[AdmissionRequest, float], Awaitable[Verdict]]


class Server:
    """The handlers with what they need; ``app`` is the application to run.

    ``facts``: what injection works from at this moment, ``None`` where nothing is injected.
    ``owners``: adds the owners of the request's pod to them. ``callers``: who may ask.
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
        limits: Limits | None = None,
        callers: Callers | None = None,
    ) -> None:
        self._policy = policy
        self._rules = rules
        self._metrics = metrics
        self._health = health
        self._facts = facts
        self._mode = mode
        self._owners = owners
        self._callers = callers
        self._alike = Alike(self._answer)
        limits = limits or Limits()
        self._bodies = Bodies(body_limit_bytes, body_seconds, limits.large_bytes)
        self._at_most, self._deciding = limits.deciding, 0
        self.app = web.Application(client_max_size=body_limit_bytes, middlewares=[busy])
        self.app.router.add_post(MUTATE_PATH, self._review(MUTATE_PATH, self._mutate))
        self.app.router.add_post(VALIDATE_PATH, self._review(VALIDATE_PATH, self._validate))
        self.app.router.add_get("/livez", self._livez)
        self.app.router.add_get("/readyz", self._readyz)
        self.app.router.add_get("/metrics", self._metrics_page)

    def _review(
        self, path: str, decide: Decide
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Return the handler of one path: read, decide, answer, count."""

        async def handle(http: web.Request) -> web.Response:
            started = perf_counter()
            deadline = asyncio.get_running_loop().time() + deadlines.seconds(http.query_string)
            try:
                self._admit(http)
                async with self._bodies.body(http, deadline) as body:
                    request = parse(body)
                    verdict = await self._decided(decide, request, deadline)
            except MalformedReview as error:
                self._count(path, "malformed")
                return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")
            except Shed as shed:
                self._count(path, shed.outcome)
                return web.Response(status=shed.status, text=f"{shed}\n")
            outcome = _outcome(verdict)
            self._count(path, outcome)
            self._metrics.answered(path, request.operation, outcome, perf_counter() - started)
            reply = respond(request.uid, verdict)
            return web.Response(body=reply, content_type="application/json")

        return handle

    def _admit(self, http: web.Request) -> None:
        """Raise ``Shed`` for a caller that may not ask."""
        if self._callers is None:
            return
        transport = http.transport
        shown = transport.get_extra_info("peercert") if transport is not None else None
        problem = self._callers.problem(shown, http.headers.get("Authorization", ""))
        if problem:
            _log.warning("caller refused", extra={"peer": http.remote, "problem": problem})
            raise Shed("unauthorized", HTTPStatus.UNAUTHORIZED, problem)

    async def _decided(self, decide: Decide, request: AdmissionRequest, deadline: float) -> Verdict:
        """Return the verdict; raises ``Shed`` where it would come too late, or too many wait."""
        if asyncio.get_running_loop().time() >= deadline:
            raise Shed("late", HTTPStatus.GATEWAY_TIMEOUT, "the caller has stopped waiting")
        if self._deciding >= self._at_most:
            text = "too many reviews are being decided: see limits.deciding"
            raise Shed("overloaded", HTTPStatus.SERVICE_UNAVAILABLE, text)
        self._deciding += 1
        try:
            return await decide(request, deadline)
        finally:
            self._deciding -= 1

    async def _mutate(self, request: AdmissionRequest, deadline: float) -> Verdict:
        try:
            facts = self._facts()
            if isinstance(facts, Facts):
                facts = await self._with_owners(request, facts, deadline)
            verdict, done = self._alike.answer(request, facts)
        except MalformedReview:
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the pod must get through: see above
            _log.exception("mutation failed", extra={"uid": request.uid})
            return Verdict(warnings=(_DEFECT,))
        if done is not NOTHING:
            self._note(request, done)
        return _told(request, verdict)

    async def _with_owners(self, request: AdmissionRequest, facts: Facts, deadline: float) -> Facts:
        """Return the facts with the pod's owners; without them where there is no time left."""
        if self._owners is None:
            return facts
        try:
            async with asyncio.timeout_at(deadline - ANSWER_S):
                return await self._owners(request, facts)
        except TimeoutError:
            return facts

    def _answer(self, request: AdmissionRequest, facts: Known) -> Answer:
        return admit_mutating(request, self._policy, self._rules, facts, self._mode)

    async def _validate(self, request: AdmissionRequest, _deadline: float) -> Verdict:
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
