"""Who calls, and what they may do: the rules of the section ``callers``, without HTTP.

A certificate is read once per connection. For a token the API server is asked (``Accounts``).
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar, assert_never

import msgspec

from extender.access.answercache import AnswerCache
from extender.config.callers import CallersSettings, NamedCallers, Tokens
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.reviews import UserInfo, may, may_with_pods, owner_of
from muster.observability import clientcert

NO_S: Final = 10.0  # how long a refusal of the API server is cached, as on kube-scheduler's ports
QUESTION_S: Final = 5.0  # for one question, retries included; an answer takes milliseconds
GET: Final = "get"
# What the API server says of tokens that are bound to a pod or a node (KEP-4193, Kubernetes 1.30).
NODE_CLAIM: Final = "authentication.kubernetes.io/node-name"

V = TypeVar("V")


class Area(StrEnum):
    """The groups of routes that callers need permission for; also the sections of ``callers``."""

    SCHEDULE = "schedule"
    RESERVE = "reserve"
    READ = "read"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class CertificateHolder:
    """The subject of a client certificate that the handshake has verified."""

    #: the common name, "" without one
    name: str
    organizations: frozenset[str]
    #: until when, in epoch seconds
    until: float

    def __str__(self) -> str:
        return f"the certificate of {self.name or 'nobody (it has no common name)'}"


def holder(certificate: Mapping[str, Any]) -> CertificateHolder:
    """Return the subject of a certificate in the form of ``SSLSocket.getpeercert``."""
    shown = clientcert.read(certificate)
    names = shown.common_names
    return CertificateHolder(names[-1] if names else "", shown.organizations, shown.until)


@dataclass(frozen=True, slots=True)
class CallerRules:
    """Who may call what, by the configuration; see the table in ``extender.config.callers``."""

    #: the section ``callers``
    callers: CallersSettings

    def certificate_may(self, area: Area, it: CertificateHolder) -> bool:
        """Return whether the holder of a certificate of our authority is admitted."""
        named = self.named(area)
        if area is Area.NODE:
            return False  # it names no node
        if named is None:
            return True
        return _listed(it.name, it.organizations, named.certificates, named.organizations)

    def user_may(self, area: Area, user: UserInfo) -> bool:
        """Return whether the owner of a token is admitted without asking RBAC."""
        named = self.named(area)
        return named is not None and _listed(user.username, user.groups, named.users, named.groups)

    def asks_rbac(self, area: Area) -> bool:
        """Return whether RBAC can permit the owner of a token to call."""
        if area is not Area.READ:
            return False
        return self.callers.read is None or self.callers.read.rbac

    def named(self, area: Area) -> NamedCallers | None:
        """Return the callers named for an area; None if the configuration has no such section."""
        match area:
            case Area.SCHEDULE:
                return self.callers.schedule
            case Area.RESERVE:
                return self.callers.reserve
            case Area.READ:
                return self.callers.read
            case Area.NODE:
                return self.callers.node
            case _ as unreachable:
                assert_never(unreachable)


def node_of(user: UserInfo) -> str:
    """Return the node of the pod that a token was made for, "" where the token names none."""
    named = user.extra.get(NODE_CLAIM, ())
    return named[0] if len(named) == 1 else ""


def _listed(
    name: str, belongs: Collection[str], names: Collection[str], groups: Collection[str]
) -> bool:
    return name in names or any(group in groups for group in belongs)


class Accounts:
    """Owners of tokens, and what RBAC permits them; answers are cached.

    Its methods raise ``KubeError`` or ``TimeoutError`` if the API server cannot be asked, and
    ``Busy`` if too many questions wait.
    """

    def __init__(
        self,
        client: KubeClient,
        tokens: Tokens,
        clock: Callable[[], float],
        asked: Callable[[str, str], None],
    ) -> None:
        """Call ``asked`` with each question (token or access) and its outcome (yes, no, failed)."""
        yes_s = tokens.cache_seconds
        no_s = min(NO_S, yes_s)
        self._client = client
        self._audiences = tokens.audiences
        self._owners = AnswerCache[bytes, UserInfo | None](yes_s, no_s, clock)
        self._allowed = AnswerCache[tuple[bytes, str], bool](yes_s, no_s, clock)
        self._pods = AnswerCache[tuple[bytes, str, str, str], bool](yes_s, no_s, clock)
        self._asked = asked

    async def owner(self, token: str) -> UserInfo | None:
        """Return the owner of a token, None for an unknown token. The token is not stored."""

        async def ask() -> UserInfo | None:
            return await self._answer("token", owner_of(self._client, token, self._audiences))

        return await self._owners.get(hashlib.sha256(token.encode()).digest(), ask)

    async def may_get(self, user: UserInfo, path: str) -> bool:
        """Return whether RBAC lets ``user`` get ``path``."""

        async def ask() -> bool:
            return await self._answer("access", may(self._client, user, GET, path))

        return await self._allowed.get((msgspec.json.encode(user), path), ask)

    async def may_with_pods(
        self, user: UserInfo, verb: str, namespace: str, name: str = ""
    ) -> bool:
        """Return whether RBAC lets ``user`` do that to pods; ``namespace`` "": everywhere."""

        async def ask() -> bool:
            asked = may_with_pods(self._client, user, verb, namespace, name)
            return await self._answer("access", asked)

        question = (msgspec.json.encode(user), verb, namespace, name)
        return await self._pods.get(question, ask)

    async def _answer(self, kind: str, question: Awaitable[V]) -> V:
        """Return the answer to a question, within ``QUESTION_S``; report the outcome."""
        try:
            async with asyncio.timeout(QUESTION_S):
                answer = await question
        except (KubeError, TimeoutError):
            self._asked(kind, "failed")
            raise
        self._asked(kind, "yes" if answer else "no")
        return answer
