"""Who calls, and what they may do: the rules of ``callers`` put into code.

A certificate is looked at once per connection, a token by asking the API server (``Accounts``).
Nothing here knows HTTP.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar, assert_never

import msgspec

from extender.access.answercache import Memo
from extender.config.callers import CallersSettings, NamedCallers, Tokens
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.reviews import UserInfo, may, owner_of
from muster.observability import clientcert

NO_S: Final = (
    10.0  # how long a refusal of the API server is believed, as kube-scheduler's own ports
)
QUESTION_S: Final = 5.0  # for one question, retries included; an answer takes milliseconds
GET: Final = "get"

V = TypeVar("V")


class Area(StrEnum):
    """What callers are let into; also the sections of ``callers``."""

    SCHEDULE = "schedule"
    RESERVE = "reserve"
    READ = "read"


@dataclass(frozen=True, slots=True)
class TokenHolder:
    """Who has the key of a certificate that the handshake found good."""

    name: str
    organizations: frozenset[str]
    #: until when, in epoch seconds
    until: float

    def __str__(self) -> str:
        return f"the certificate of {self.name or 'nobody (it has no common name)'}"


def holder(certificate: Mapping[str, Any]) -> TokenHolder:
    """Return the subject of a certificate in the form of ``SSLSocket.getpeercert``."""
    shown = clientcert.read(certificate)
    names = shown.common_names
    return TokenHolder(names[-1] if names else "", shown.organizations, shown.until)


@dataclass(frozen=True, slots=True)
class CallerRules:
    """What the configuration says; see the table in ``extender.config.callers``."""

    callers: CallersSettings

    def certificate_may(self, area: Area, it: TokenHolder) -> bool:
        """Return whether the holder of a certificate of our authority is let in."""
        named = self.named(area)
        if named is None:
            return True
        return _listed(it.name, it.organizations, named.certificates, named.organizations)

    def user_may(self, area: Area, user: UserInfo) -> bool:
        """Return whether the owner of a token is let in without asking RBAC."""
        named = self.named(area)
        return named is not None and _listed(user.username, user.groups, named.users, named.groups)

    def asks_rbac(self, area: Area) -> bool:
        """Return whether RBAC may let the owner of a token in."""
        if area is not Area.READ:
            return False
        return self.callers.read is None or self.callers.read.rbac

    def named(self, area: Area) -> NamedCallers | None:
        """Return who is named for an area; None where its section is left out."""
        match area:
            case Area.SCHEDULE:
                return self.callers.schedule
            case Area.RESERVE:
                return self.callers.reserve
            case Area.READ:
                return self.callers.read
            case _ as unreachable:
                assert_never(unreachable)


def _listed(
    name: str, belongs: Collection[str], names: Collection[str], groups: Collection[str]
) -> bool:
    return name in names or any(group in groups for group in belongs)


class Accounts:
    """Owners of tokens, and what RBAC lets them do; answers are kept for a while.

    Raises ``KubeError`` or ``TimeoutError`` where the API server cannot be asked, ``Busy`` where
    too much is asked. ``asked`` is told of every question to it: token or access, and what came.
    """

    def __init__(
        self,
        client: KubeClient,
        tokens: Tokens,
        clock: Callable[[], float],
        asked: Callable[[str, str], None],
    ) -> None:
        yes_s = tokens.cache_seconds
        no_s = min(NO_S, yes_s)
        self._client = client
        self._audiences = tokens.audiences
        self._owners = Memo[bytes, UserInfo | None](yes_s, no_s, clock)
        self._allowed = Memo[tuple[bytes, str], bool](yes_s, no_s, clock)
        self._asked = asked

    async def owner(self, token: str) -> UserInfo | None:
        """Return whose token it is; None for nobody's. The token itself is not kept."""

        async def ask() -> UserInfo | None:
            return await self._told("token", owner_of(self._client, token, self._audiences))

        return await self._owners.get(hashlib.sha256(token.encode()).digest(), ask)

    async def may_get(self, user: UserInfo, path: str) -> bool:
        """Return whether RBAC lets ``user`` get ``path``."""

        async def ask() -> bool:
            return await self._told("access", may(self._client, user, GET, path))

        return await self._allowed.get((msgspec.json.encode(user), path), ask)

    async def _told(self, kind: str, question: Awaitable[V]) -> V:
        """Ask, not for ever, and tell what came of it."""
        try:
            async with asyncio.timeout(QUESTION_S):
                answer = await question
        except (KubeError, TimeoutError):
            self._asked(kind, "failed")
            raise
        self._asked(kind, "yes" if answer else "no")
        return answer
