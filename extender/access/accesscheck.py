"""The gate in front of the routes: admits a caller or answers with an error.

::

    connection ──► its certificate, read once ──► allows this route ──► handler
                                │ none, or not enough
                                ▼
                   Authorization: Bearer … ──► owner ──► named, or RBAC ──► handler
                                │                 │          │ no: 403
                                │ none: 401, 403  │ unknown: 401
                                └ the API server cannot be asked: 503, never a guess

The API server's proxy removes ``Authorization``. To read, and for nothing else, a caller behind it
may send the token in ``Muster-Authorization``, or a signature by a client certificate of the
cluster (``muster.apiwire.callersignature``). RBAC on pods limits what a reader sees
(``readerscope``). What a node's program asks about its node is for a token that names that node.

kube-scheduler treats every status but 200 as a failure and shows no body. The text is for people
and for the log, which gets a few such lines a minute, with the caller's address. Every refusal is
counted.
"""

import asyncio
import logging
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Final, Self
from weakref import ref

import orjson
from aiohttp import web

from extender.access.answercache import Busy
from extender.access.callerrules import (
    Accounts,
    Area,
    CallerRules,
    CertificateHolder,
    holder,
    node_of,
)
from extender.access.readerscope import KEY, OutOfSight, PodRight, ReaderScope, needed
from extender.access.signedcallers import NotSigned, SignedCallers
from extender.config.callers import identifies
from extender.config.settings import ExtenderConfig
from extender.metrics import ExtenderMetrics
from muster.apiwire import callersignature as signature
from muster.apiwire.callersignature import ShownSignature
from muster.apiwire.whatif import BODY_BYTES
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.reviews import UserInfo
from muster.observability.idleconnections import vouch

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

HANDSHAKE: Final = "handshake"  # the label ``route`` of callers whose handshake failed
PATIENCE_S: Final = 5.0  # for questions to the API server: half of Prometheus' scrape time-out
LOGGED_PER_MINUTE: Final = 10
ALL_GANGS: Final = "gangs"  # the route that is shown in part
_NO_CERTIFICATE: Final = "PEER_DID_NOT_RETURN_A_CERTIFICATE"  # OpenSSL's sslerr.h
_NEVER: Final = float("-inf")
# A name of an object: what RBAC is asked and what is looked up cannot differ in it, as they could
# in one with an escaped slash.
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


class DenialReason(StrEnum):
    """Why a caller is refused: the label ``reason`` of the metric."""

    NOBODY = "nobody"  # no credentials
    TOKEN = "token"  # noqa: S105  an unknown token, or one for another audience
    CERTIFICATE = "certificate"  # a certificate of another authority, or an expired one
    FORBIDDEN = "forbidden"  # a known caller without permission
    UNAVAILABLE = "unavailable"  # the API server could not be asked
    BUSY = "busy"  # too many questions to the API server were waiting
    NAME = "name"  # a question about something that no object can be called
    OTHER = "other"  # another error of the handshake: the caller does not trust us, old TLS


_STATUS: Final[Mapping[DenialReason, HTTPStatus]] = {
    DenialReason.NOBODY: HTTPStatus.UNAUTHORIZED,
    DenialReason.TOKEN: HTTPStatus.UNAUTHORIZED,
    DenialReason.CERTIFICATE: HTTPStatus.UNAUTHORIZED,
    DenialReason.FORBIDDEN: HTTPStatus.FORBIDDEN,
    DenialReason.NAME: HTTPStatus.BAD_REQUEST,
    DenialReason.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    DenialReason.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class _Asking:
    """One request, as far as it matters here."""

    area: Area
    #: the name of the route in metrics and messages
    route: str
    path: str
    #: the header ``Authorization``, or the one that takes its place; "" if there is none
    authorization: str
    #: what a caller without a token shows instead
    signed: ShownSignature | None
    #: the node that is asked about, "" elsewhere
    node: str
    #: the right on pods that is enough, None: there is none
    right: PodRight | None
    #: the subject of the certificate, None without one
    holder: CertificateHolder | None


class _Refused(Exception):
    """The caller is refused; ``text`` names the credentials that were sent and what is needed."""

    def __init__(self, why: DenialReason, text: str) -> None:
        super().__init__(text)
        self.why = why


@dataclass(slots=True)
class _Admitted:
    """Connections with a certificate that is enough.

    A WeakKeyDictionary would do, but its look-up is written in Python, and the look-up here runs
    with every call of kube-scheduler. An id is removed before the memory of its connection can be
    used again.
    """

    #: id of a connection → until when it is admitted (epoch seconds)
    until: dict[int, float] = field(default_factory=dict)
    _refs: dict[int, ref[asyncio.BaseTransport]] = field(default_factory=dict)

    def add(self, connection: asyncio.BaseTransport, until: float) -> None:
        """Admit a connection until its certificate expires."""
        key = id(connection)
        self._refs[key] = ref(connection, lambda _gone: self._drop(key))
        self.until[key] = until

    def _drop(self, key: int) -> None:
        del self.until[key], self._refs[key]


@dataclass(slots=True)
class Gate:
    """The gate in front of every route but health."""

    rules: CallerRules
    metrics: ExtenderMetrics
    #: whether callers are identified; else every caller is admitted
    identifies: bool = True
    #: looks tokens up, None where tokens are not accepted
    accounts: Accounts | None = None
    #: verifies signatures, None where tokens are not accepted
    signers: SignedCallers | None = None
    #: returns epoch seconds
    clock: Callable[[], float] = time.time
    _admitted: dict[Area, _Admitted] = field(
        default_factory=lambda: {area: _Admitted() for area in Area}
    )
    _minute: int = 0
    _seen: int = 0  # refusals in this minute

    @classmethod
    def of(cls, config: ExtenderConfig, client: KubeClient, metrics: ExtenderMetrics) -> Self:
        """Return the gate that the configuration asks for."""
        callers = config.callers
        asked = identifies(callers, certificates=config.asks_certificates)
        accounts, signers = None, None
        if callers.tokens is not None:
            accounts = Accounts(client, callers.tokens, time.monotonic, metrics.caller_reviewed)
            signers = SignedCallers(client, time.time, time.monotonic)
        if callers.anybody:
            log.warning("everybody who reaches this address may call everything, bind too")
        return cls(CallerRules(callers), metrics, asked, accounts, signers)

    def guarded(self, area: Area, routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
        """Return the routes with the gate in front; unchanged if callers are not identified."""
        if not self.identifies:
            return list(routes)
        return [
            web.RouteDef(r.method, r.path, self._guard(area, _name(r.path), r.handler), r.kwargs)
            for r in routes
        ]

    def handshake_failed(self, error: ssl.SSLError) -> None:
        """Count a caller whose handshake failed."""
        why = DenialReason.OTHER
        if isinstance(error, ssl.SSLCertVerificationError):
            why = DenialReason.CERTIFICATE
        elif error.reason == _NO_CERTIFICATE:
            why = DenialReason.NOBODY
        self._note(HANDSHAKE, why, str(error), None)

    def _guard(self, area: Area, route: str, handler: Handler) -> Handler:
        until = self._admitted[area].until

        async def handle(request: web.Request) -> web.StreamResponse:
            transport = request.transport  # None after the caller has hung up: never admitted
            if not all(map(_NAME.fullmatch, request.match_info.values())):
                refused = _Refused(DenialReason.NAME, _no_name(route, request))
                return self._refuse(area, route, request, refused)
            # From kube-scheduler's second call on, this look-up is the only cost.
            if self.clock() >= until.get(id(transport), _NEVER):
                answer = await self._look_at(area, route, request)
                if answer is not None:
                    return answer
            try:
                return await handler(request)
            except OutOfSight as hidden:
                return self._refuse(area, route, request, _hidden(hidden))

        return handle

    def _refuse(
        self, area: Area, route: str, request: web.Request, refused: _Refused
    ) -> web.Response:
        self._note(route, refused.why, str(refused), request.remote)
        return self._answer(area, refused)

    async def _look_at(self, area: Area, route: str, request: web.Request) -> web.Response | None:
        """Return None for a caller that is admitted, else the answer to it."""
        it = None
        if (transport := request.transport) is not None:
            shown = transport.get_extra_info("peercert")
            it = holder(shown) if shown else None
            if it and self.clock() < it.until and self.rules.certificate_may(area, it):
                self._admitted[area].add(transport, it.until)
                vouch(transport)
                return None
        try:
            scope = await self._admit(_asking(area, route, request, it), request)
        except _Refused as refused:
            return self._refuse(area, route, request, refused)
        if scope is not None:
            request[KEY] = scope
        vouch(transport)
        return None

    async def _admit(self, asking: _Asking, request: web.Request) -> ReaderScope | None:
        """Return what the caller sees, None for everything; raises ``_Refused``."""
        if asking.signed is None and not asking.authorization:
            raise self._without_token(asking)
        if self.accounts is None:
            raise _Refused(
                DenialReason.TOKEN,
                f"{asking.route}: tokens are not accepted here; {self._needed(asking)}",
            )
        try:
            async with asyncio.timeout(PATIENCE_S):
                user = await self._user(asking, request)
                return await self._permitted(asking, self.accounts, user)
        except Busy:
            text = f"{asking.route}: too many tokens are being looked at; try again in a moment"
            raise _Refused(DenialReason.BUSY, text) from None
        except (KubeError, TimeoutError) as error:
            text = f"{asking.route}: the API server cannot be asked about the caller: {error}"
            raise _Refused(DenialReason.UNAVAILABLE, text) from error

    async def _user(self, asking: _Asking, request: web.Request) -> UserInfo:
        """Return the owner of the token, or whoever signed the request."""
        if asking.authorization:
            return await self._owner(asking)
        if asking.signed is None or self.signers is None:
            raise self._without_token(asking)
        try:
            user = await self.signers.holder(asking.signed, request.method, request.raw_path)
        except NotSigned as why:
            raise _Refused(DenialReason.CERTIFICATE, f"{asking.route}: {why}") from why
        if asking.signed.digest != signature.digest(await _body(request)):
            text = f"{asking.route}: {signature.DIGEST}: is not that of the body"
            raise _Refused(DenialReason.CERTIFICATE, text)
        return user

    async def _owner(self, asking: _Asking) -> UserInfo:
        scheme, _, token = asking.authorization.partition(" ")
        if scheme.lower() != "bearer" or not token.strip() or self.accounts is None:
            # The text does not repeat the header: it may be a token without its scheme.
            raise _Refused(
                DenialReason.TOKEN, f"{asking.route}: Authorization: write 'Bearer' and a token"
            )
        user = await self.accounts.owner(token.strip())
        if user is None:
            text = "the token is invalid: expired, of another cluster or for another audience"
            raise _Refused(DenialReason.TOKEN, f"{asking.route}: {text}")
        return user

    async def _permitted(
        self, asking: _Asking, accounts: Accounts, user: UserInfo
    ) -> ReaderScope | None:
        """Return what the user sees, None for everything; raises ``_Refused``."""
        if self.rules.user_may(asking.area, user):
            if asking.area is Area.NODE:
                _check_node(asking, user)
            return None
        if not self.rules.asks_rbac(asking.area):
            raise self._forbidden(asking, user)
        if await accounts.may_get(user, asking.path):
            return None
        right = asking.right
        if right is None and asking.route != ALL_GANGS:
            raise self._forbidden(asking, user)
        if right is not None and not await accounts.may_with_pods(
            user, right.verb, right.namespace, right.name
        ):
            raise self._forbidden(asking, user)
        return ReaderScope(user, accounts)

    def _without_token(self, asking: _Asking) -> _Refused:
        it = asking.holder
        if it is None:
            text = f"{asking.route}: nothing shows who is calling; {self._needed(asking)}"
            return _Refused(DenialReason.NOBODY, text)
        if self.clock() >= it.until:
            return _Refused(DenialReason.CERTIFICATE, f"{asking.route}: {it} has expired")
        return self._forbidden(asking, it)

    def _forbidden(self, asking: _Asking, who: CertificateHolder | UserInfo) -> _Refused:
        shown = str(who) if isinstance(who, CertificateHolder) else f"user {who.username!r}"
        text = f"{asking.route}: {shown} may not: needs a name in callers.{asking.area}"
        if self.accounts is not None and self.rules.asks_rbac(asking.area):
            text += f", or a token whose owner RBAC lets get nonResourceURL {asking.path}"
            text += f" or {asking.right}" if asking.right is not None else ""
        return _Refused(DenialReason.FORBIDDEN, text)

    def _needed(self, asking: _Asking) -> str:
        if self.accounts is None:
            return "show a client certificate of tls.clientCaFile"
        if asking.area is Area.NODE:
            return "send the bearer token of the device plugin's pod on that node"
        if asking.area is not Area.READ and self.rules.named(asking.area) is None:
            return "show a client certificate of tls.clientCaFile (no token is enough for this)"
        return "show a client certificate of tls.clientCaFile, or send a bearer token"

    def _answer(self, area: Area, refused: _Refused) -> web.Response:
        # As the routes' own answers; those about a node are Kubernetes' Status.
        field_ = {Area.SCHEDULE: "Error", Area.NODE: "message"}.get(area, "error")
        headers = {}
        if refused.why in (DenialReason.UNAVAILABLE, DenialReason.BUSY):
            headers["Retry-After"] = "1"
        elif _STATUS[refused.why] is HTTPStatus.UNAUTHORIZED and self.accounts is not None:
            headers["WWW-Authenticate"] = 'Bearer realm="muster"'
        return web.Response(
            body=orjson.dumps({field_: str(refused)}),
            status=_STATUS[refused.why],
            content_type="application/json",
            headers=headers,
        )

    def _note(self, route: str, why: DenialReason, text: str, peer: str | None) -> None:
        self.metrics.refused_callers.labels(route, why.value).inc()
        minute = int(self.clock() // 60)
        silent = 0
        if minute != self._minute:
            silent = max(0, self._seen - LOGGED_PER_MINUTE)
            self._minute, self._seen = minute, 0
        self._seen += 1
        if self._seen <= LOGGED_PER_MINUTE:
            shown = {"route": route, "reason": why.value, "peer": peer, "problem": text}
            log.warning("caller refused", extra={**shown, "not_logged_before": silent})


def _asking(area: Area, route: str, request: web.Request, it: CertificateHolder | None) -> _Asking:
    """Return what matters of a request; raises ``_Refused`` for headers that contradict."""
    sent, signed, right = request.headers.get("Authorization", ""), None, None
    if area is Area.READ:
        right = needed(route, request.match_info, request.query)
        instead = request.headers.get(signature.TOKEN, "")
        try:
            signed = signature.read(request.headers)
        except ValueError as error:
            raise _Refused(DenialReason.CERTIFICATE, f"{route}: {error}") from error
        if sum(map(bool, (sent, instead, signed))) > 1:
            text = f"Authorization, {signature.TOKEN}, {signature.CERTIFICATE}: send one of them"
            raise _Refused(DenialReason.TOKEN, f"{route}: {text}")
        sent = sent or instead
    node = request.match_info["node"] if area is Area.NODE else ""
    return _Asking(area, route, request.path, sent, signed, node, right, it)


def _check_node(asking: _Asking, user: UserInfo) -> None:
    """Raise ``_Refused`` unless the token was made for the node that is asked about."""
    node = node_of(user)
    if node == asking.node:
        return
    who = f"the token of {user.username!r}"
    asked = f"{asking.route}: node {asking.node!r} is asked about, and {who}"
    if node:
        text = f"{asked} is for node {node!r}: ask about that one (the plugin's --node-name)"
    else:
        text = (
            f"{asked} names no node: use the one that the kubelet makes for the plugin's pod; "
            "Kubernetes 1.30 and newer writes the node into it"
        )
    raise _Refused(DenialReason.FORBIDDEN, text)


async def _body(request: web.Request) -> bytes:
    """Return the body, which the handler can read again; raises ``_Refused`` for a large one."""
    if (request.content_length or 0) > BODY_BYTES or "Transfer-Encoding" in request.headers:
        text = f"a signed request needs Content-Length, {BODY_BYTES} bytes at most"
        raise _Refused(DenialReason.CERTIFICATE, text)
    return await request.read()


def _hidden(hidden: OutOfSight) -> _Refused:
    return _Refused(DenialReason.FORBIDDEN, str(hidden))


def _name(path: str) -> str:
    """Return the name of a route in the metric: its last part that is not a variable."""
    return [part for part in path.split("/") if part and not part.startswith("{")][-1]


def _no_name(route: str, request: web.Request) -> str:
    wrong = {k: v for k, v in request.match_info.items() if not _NAME.fullmatch(v)}
    given = ", ".join(f"{key}: {value!r}" for key, value in wrong.items())
    return f"{route}: {given} is no name of an object: letters, digits, '-', '_' and '.' alone"
