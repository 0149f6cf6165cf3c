"""What a reader sees who may not read everything: the namespaces whose pods the reader may list.

::

    may get the path (muster-reader), or is named in callers.read ──► everything: no scope
    else, by route:   explain NS/POD, story pod   get that pod
                      gangs of NS, story gang     list pods of NS
                      gangs of all                those of every NS whose pods may be listed

Whoever sees a pod in the API may ask why it waits. What other namespaces have to do with it is
said without their names (``extender.readapi.redaction``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from aiohttp import web

from extender.access.callerrules import Accounts
from muster.kube.reviews import UserInfo

MOST_NAMESPACES: Final = 256
"""Namespaces that one request asks the API server about."""


class OutOfSight(Exception):
    """The reader may not see what was asked for; the text names the right."""


@dataclass(frozen=True, slots=True)
class PodRight:
    """A right on pods; ``name``: "" for all of the namespace."""

    verb: str
    namespace: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} pods{f'/{self.name}' if self.name else ''} in {self.namespace}"


def needed(route: str, variables: Mapping[str, str], query: Mapping[str, str]) -> PodRight | None:
    """Return the right that suffices for a route; None: no right on pods does.

    ``route``: its name in metrics. For the gangs of all namespaces the answer is limited instead.
    """
    namespace = variables.get("namespace", "")
    match route:
        case "explain" if query.get("kind", "pod") == "pod":
            return PodRight("get", namespace, variables["pod"])
        case "story" if variables["kind"] == "pod":
            return PodRight("get", namespace, variables["name"])
        case "explain" | "story":
            return PodRight("list", namespace)
        case "gangs" if query.get("namespace"):
            return PodRight("list", query["namespace"])
        case _:
            return None


@dataclass(slots=True)
class ReaderScope:
    """The namespaces that one reader sees, asked for as they come up in one request."""

    user: UserInfo
    accounts: Accounts
    _seen: dict[str, bool] = field(default_factory=dict)

    async def sees(self, namespace: str) -> bool:
        """Return whether the reader may list pods there. Raises ``KubeError`` or ``Busy``."""
        if "" not in self._seen:
            self._seen[""] = await self.accounts.may_with_pods(self.user, "list", "")
        if self._seen[""]:
            return True
        if namespace not in self._seen:
            if len(self._seen) > MOST_NAMESPACES:
                raise OutOfSight(
                    f"gangs: more than {MOST_NAMESPACES} namespaces have gangs; name one of them "
                    "with ?namespace= (-n)"
                )
            allowed = await self.accounts.may_with_pods(self.user, "list", namespace)
            self._seen[namespace] = allowed
        return self._seen[namespace]

    async def visible(self, namespaces: Iterable[str]) -> frozenset[str]:
        """Return which of the namespaces the reader sees. Raises ``KubeError`` or ``Busy``."""
        return frozenset([each for each in namespaces if await self.sees(each)])


KEY: Final = web.RequestKey("KEY", ReaderScope)
"""Where a request has its scope; absent for whoever sees everything."""


def scope_of(request: web.Request) -> ReaderScope | None:
    """Return the limits of whoever asks; None: the whole cluster is shown."""
    return request.get(KEY)
