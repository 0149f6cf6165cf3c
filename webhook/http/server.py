"""The HTTP side: reviews in, reviews out, health and metrics.

``POST /mutate`` and ``POST /validate`` take admission reviews; ``GET /livez``, ``/readyz``
(``?verbose``) and ``/metrics`` are for the kubelet and Prometheus. Replies to what is no
review are plain text with a 4xx; the API server treats them as a failed call, and the
failurePolicy decides.

A defect of ours must not become an outage of the cluster, nor a way past it: after an exception in
a mutation, logged with its traceback, pods that ask for something of Muster's get the gate alone
(``webhook.review.defectgate``), others pass with a warning. In a validation it is a 500, because
silence would let through what the rules exist to stop.
Neither objects nor patches are logged: pods carry secrets in their environment.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from muster.injection.subject import Facts
from muster.observability.health import Health
from muster.observability.idleconnections import vouch
from muster.observability.metrics import CONTENT_TYPE, render
from muster.workloads.managedpods import ManagedPolicy
from webhook.config import ClientLimits
from webhook.errors import MalformedReview
from webhook.http import deadline as deadlines
from webhook.http.bodies import Bodies, Shed
from webhook.http.callers import TokenCallers
from webhook.metrics import Metrics
from webhook.registration.configurations import MUTATE_PATH, VALIDATE_PATH
from webhook.review.admission import admit_mutating, admit_validating
from webhook.review.defectgate import after_defect, is_new_pod
from webhook.review.gate import NOTHING
from webhook.review.injectionmode import Early, Mode
from webhook.review.jobs import completes
from webhook.review.reservedplaces import ReservedPlaces, carried, gives, taken_off
from webhook.review.sharedanswers import Alike, Answer, Known, PodRequest, may_share, new_pod
from webhook.review.suspensions import Suspends, suspended
from webhook.review.validation import ValidationRules
from webhook.review.wire import AdmissionRequest, Asked, Verdict, denied, parse, respond

_DEFECT: Final = "Muster's webhook failed on this object and left it unchanged; see its log"
ANSWER_S: Final = 0.2  # kept of the caller's time for deciding and answering
_log = logging.getLogger(__name__)

_READING: Final = ("GET", "HEAD")

Owners = Callable[[AdmissionRequest, Facts], Awaitable[Facts]]
Report = Callable[[AdmissionRequest, str], None]
Decided = tuple[Asked, Verdict]
Decide = Callable[[bytes, float, bool], Awaitable[Decided]]
"""Of a body, its deadline, and whether the caller has shown who it is."""
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_NOWHERE: Final[Mapping[str, Handler]] = {}


@dataclass(frozen=True, slots=True)
class Reviewing:
    """What reviews are decided by."""

    policy: ManagedPolicy
    rules: ValidationRules
    #: returns what injection works from at this moment; None where nothing is injected
    facts: Callable[[], Facts | Early | None] | None = None
    #: adds the owners of the request's pod to the facts
    owners: Owners | None = None
    mode: Mode = Mode.ON
    #: gives pods the places that the extender keeps for them; without it no pod has one
    reservations: ReservedPlaces | None = None
    #: whether a queue has whole jobs wait; without it none is suspended
    suspends: Suspends | None = None
    #: writes an Event where the templates of an object were not completed
    report: Report | None = None
    #: counts changes of the queues that ``rules`` go by
    generation: Callable[[], int] = int


@dataclass(frozen=True, slots=True)
class Admittance:
    """Who may ask, and how much at a time."""

    #: largest body of a request
    body_limit_bytes: int
    #: how long a body may take to arrive
    body_seconds: float
    limits: ClientLimits = field(default_factory=ClientLimits)
    #: who may ask; without it every client
    callers: TokenCallers | None = None


class ReviewServer:
    """The handlers with what they need; ``handle`` is what an aiohttp server calls.

    There is no ``web.Application``: five fixed paths need no router, and what it does for each
    request (resolving, middlewares, signals) is a tenth of what a shared answer costs.
    """

    def __init__(
        self, reviewing: Reviewing, admittance: Admittance, metrics: Metrics, health: Health
    ) -> None:
        self._policy, self._rules = reviewing.policy, reviewing.rules
        self._facts, self._owners = reviewing.facts, reviewing.owners
        self._mode, self._reservations = reviewing.mode, reviewing.reservations
        self._report, self._suspends = reviewing.report, reviewing.suspends
        self._metrics, self._health = metrics, health
        self._alike = Alike(self._answer, reviewing.generation)
        limits = admittance.limits
        self._callers = admittance.callers
        self._bodies = Bodies(
            admittance.body_limit_bytes, admittance.body_seconds, limits.large_bytes
        )
        self._at_most, self._deciding = limits.deciding, 0
        self._handlers: Mapping[str, Mapping[str, Handler]] = {
            MUTATE_PATH: {"POST": self._review(MUTATE_PATH, self._mutate)},
            VALIDATE_PATH: {"POST": self._review(VALIDATE_PATH, self._validate)},
            "/livez": dict.fromkeys(_READING, self._livez),
            "/readyz": dict.fromkeys(_READING, self._readyz),
            "/metrics": dict.fromkeys(_READING, self._metrics_page),
        }

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        methods = self._handlers.get(http.path, _NOWHERE)
        handler = methods.get(http.method)
        return _not_served(methods) if handler is None else await handler(http)

    def _review(self, path: str, decide: Decide) -> Handler:
        """Return the handler of one path: read, decide, answer, count."""

        async def handle(http: web.BaseRequest) -> web.Response:
            clock = asyncio.get_running_loop().time
            started = clock()
            deadline = started + deadlines.seconds(http.query_string)
            try:
                request, verdict = await self._read(http, decide, deadline)
            except MalformedReview as error:
                self._metrics.reviewed(path, "malformed")
                return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{error}\n")
            except Shed as shed:
                self._metrics.reviewed(path, shed.outcome)
                return web.Response(status=shed.status, text=f"{shed}\n")
            outcome = _outcome(verdict)
            self._metrics.reviewed(path, outcome)
            self._metrics.answered(path, request.operation, outcome, clock() - started)
            reply = respond(request.uid, verdict)
            return web.Response(body=reply, content_type="application/json")

        return handle

    async def _read(self, http: web.BaseRequest, decide: Decide, deadline: float) -> Decided:
        """Return the request and what was decided about it."""
        shown = self._callers is not None and self._admit(http, self._callers)
        body = self._bodies.arrived(http.content)
        if body is not None:
            return await self._decided(decide, body, deadline, shown=shown)
        async with self._bodies.body(http, deadline) as body:
            return await self._decided(decide, body, deadline, shown=shown)

    def _admit(self, http: web.BaseRequest, callers: TokenCallers) -> bool:
        """Return whether a caller has shown who it is; raise ``Shed`` where it must have."""
        transport = http.transport
        shown = transport.get_extra_info("peercert") if transport is not None else None
        problem = callers.problem(shown, http.headers.get("Authorization", ""))
        if problem and not callers.required:
            return False
        if problem:
            _log.warning("caller refused", extra={"peer": http.remote, "problem": problem})
            raise Shed("unauthorized", HTTPStatus.UNAUTHORIZED, problem)
        vouch(transport)
        return True

    async def _decided(
        self, decide: Decide, body: bytes, deadline: float, *, shown: bool
    ) -> Decided:
        """Return the verdict; raises ``Shed`` where it would come too late, or too many wait."""
        if asyncio.get_running_loop().time() >= deadline:
            raise Shed("late", HTTPStatus.GATEWAY_TIMEOUT, "the caller has stopped waiting")
        if self._deciding >= self._at_most:
            text = "too many reviews are being decided: see limits.deciding"
            raise Shed("overloaded", HTTPStatus.SERVICE_UNAVAILABLE, text)
        self._deciding += 1
        try:
            return await decide(body, deadline, shown)
        finally:
            self._deciding -= 1

    async def _mutate(self, body: bytes, deadline: float, shown: bool) -> Decided:  # noqa: FBT001
        try:
            request, (verdict, done) = await self._mutated(body, deadline, shown=shown)
        except MalformedReview as error:
            request = parse(body)
            if not is_new_pod(request):
                raise
            return request, _logged(request, denied(HTTPStatus.UNPROCESSABLE_ENTITY, str(error)))
        except Exception:  # noqa: BLE001 - whatever it is, no pod passes unread: see above
            return self._failed(parse(body))
        if done is not NOTHING:
            self._metrics.mutated(done)
            self._uncompleted(request, done.uncompleted)
            if _log.isEnabledFor(logging.DEBUG):
                _log.debug("mutated", extra={**_subject(request), "rewritten": done.rewritten})
        return request, _logged(request, verdict)

    def _failed(self, request: AdmissionRequest) -> Decided:
        """Return the answer where there is a defect in us: no pass, and not in silence."""
        _log.exception("mutation failed", extra={"uid": request.uid})
        if completes(request.resource):
            self._uncompleted(request, _DEFECT)
        return request, _logged(request, after_defect(request, self._policy))

    def _uncompleted(self, request: Asked, why: str) -> None:
        """Report templates that were not completed, where they are going to be stored."""
        if not why or request.dry_run or self._report is None:
            return
        if isinstance(request, AdmissionRequest):
            self._report(request, why)

    async def _mutated(self, body: bytes, deadline: float, *, shown: bool) -> tuple[Asked, Answer]:
        """Return the answer, that of a pod like it where nothing distinguishes the two.

        Only override policies ask for owners, and with them no answer is shared.
        """
        facts = None if self._facts is None else self._facts()
        pod = new_pod(body) if may_share(facts) else None
        if pod is not None:
            return pod, await self._shared(pod, facts, shown=shown)
        request = parse(body)
        if self._owners is not None and isinstance(facts, Facts):
            facts = await self._with_owners(request, self._owners, facts, deadline)
        return request, self._answer(request, facts)

    async def _shared(self, request: PodRequest, facts: Known, *, shown: bool) -> Answer:
        """Return the answer to pods like this one, with the place reserved for it, if there is.

        Nothing is reserved for a caller that has not ``shown`` who it is, and no plan is passed.
        """
        if self._reservations is None:
            return self._alike.answer(request, facts)[1]
        bare, plan = carried(request.object)
        asked = msgspec.structs.replace(request, object=bare) if plan else request
        alike, shared = self._alike.answer(asked, facts)
        if not shown:
            return taken_off(request.object, shared) if plan else shared
        answer = await self._reservations.placed(asked, alike, shared, plan)
        if plan and not gives(answer, plan):
            self._reservations.forget(plan)
            return taken_off(request.object, shared)
        return answer

    async def _with_owners(
        self, request: AdmissionRequest, owners: Owners, facts: Facts, deadline: float
    ) -> Facts:
        """Return the facts with the pod's owners; without them where there is no time left."""
        try:
            async with asyncio.timeout_at(deadline - ANSWER_S):
                return await owners(request, facts)
        except TimeoutError:
            return facts

    def _answer(self, request: AdmissionRequest, facts: Known) -> Answer:
        verdict, done = admit_mutating(request, self._policy, self._rules, facts, self._mode)
        if self._suspends is not None:
            verdict = suspended(verdict, request, self._policy, self._suspends)
        return verdict, done

    async def _validate(self, body: bytes, _deadline: float, _shown: bool) -> Decided:  # noqa: FBT001
        request = parse(body)
        return request, _logged(request, admit_validating(request, self._rules))

    async def _livez(self, _http: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, http: web.BaseRequest) -> web.Response:
        problems = self._health.problems()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        text = self._health.report() if problems or "verbose" in http.query else "ok\n"
        return web.Response(status=status, text=text)

    async def _metrics_page(self, _http: web.BaseRequest) -> web.Response:
        body = render(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})


def _not_served(methods: Mapping[str, Handler]) -> web.Response:
    if not methods:
        return web.Response(status=HTTPStatus.NOT_FOUND, text="404: Not Found\n")
    allowed = {"Allow": ",".join(sorted(methods))}
    return web.Response(
        status=HTTPStatus.METHOD_NOT_ALLOWED, text="405: Method Not Allowed\n", headers=allowed
    )


def _outcome(verdict: Verdict) -> str:
    if not verdict.allowed:
        return "denied"
    return "patched" if verdict.operations else "unchanged"


def _logged(request: Asked, verdict: Verdict) -> Verdict:
    if not verdict.allowed:
        _log.info("refused", extra={**_subject(request), "reason": verdict.message})
    return verdict


def _subject(request: Asked) -> dict[str, str]:
    """Return what a log line says about a request: who and which object, never its content."""
    return {
        "operation": request.operation,
        "resource": request.resource.resource,
        "namespace": request.namespace,
        "object": request.name,
        "user": request.user_info.username,
    }
