"""Who may call the extender: the section ``callers``, and what must hold in it.

How a caller shows who it is, and what that alone allows where no list says otherwise::

    shown                                     schedule, reserve     read
    ────────────────────────────────────────  ────────────────────  ─────────────────────
    nothing, at a listener that identifies    no                    no
    certificate signed by tls.clientCaFile    yes                   yes
    bearer token (callers.tokens)             no                    whom RBAC lets `get`

A listener on a loopback address with neither ``clientCaFile`` nor ``tokens`` identifies
nobody: whoever is on that machine may do everything.
"""

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from muster.observability.configfile import out_of_range

EVERYBODY: Final = frozenset(
    {"system:authenticated", "system:unauthenticated", "system:serviceaccounts"}
)

_CERTIFICATE: Final = "no certificate is asked for; set tls.clientCaFile"
_TOKEN: Final = "no token is accepted; add callers.tokens: {}"  # noqa: S105  says what to do
_ASKED_FOR: Final = {
    "certificates": _CERTIFICATE,
    "organizations": _CERTIFICATE,
    "users": _TOKEN,
    "groups": _TOKEN,
}


class Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Bearer tokens are accepted; the API server is asked for their owners (TokenReview)."""

    #: a token must have been made for one of them; empty: for the API server, as the token that
    #: every pod has. One made for ``muster.dev/extender`` alone is of no use to a thief elsewhere
    audiences: tuple[str, ...] = ()
    #: how long an answer is believed
    cache_seconds: float = 60.0


class NamedCallers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Certificates by common name and organization, owners of tokens by user and group.

    The two are kept apart: an authority and an identity provider may give out the same name.
    """

    certificates: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Readers(NamedCallers, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Who may read."""

    #: whether owners of tokens may read, too, if the cluster's RBAC lets them ``get`` the path as a
    #: nonResourceURL, as for other components' metrics
    rbac: bool = True


class CallersSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Who may call."""

    tokens: Tokens | None = None
    #: filter, prioritize, preempt, bind
    schedule: NamedCallers | None = None
    #: all else but health
    read: Readers | None = None
    #: true lets every caller do everything, at an address that others can reach
    anybody: bool = False
    #: reservations, which the webhook asks for
    reserve: NamedCallers | None = None


def identifies(callers: CallersSettings, *, certificates: bool) -> bool:
    """Return whether a caller has to show who it is. ``certificates``: a clientCaFile is set."""
    return certificates or callers.tokens is not None


def problems(callers: CallersSettings, host: str, *, tls: bool, certificates: bool) -> list[str]:
    """Return one line per value that makes no sense. ``host``: listen.host."""
    return [
        *_exposure(callers, host, tls=tls, certificates=certificates),
        *_lists(callers, certificates=certificates),
        *_tokens(callers.tokens),
    ]


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on is of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _exposure(
    callers: CallersSettings, host: str, *, tls: bool, certificates: bool
) -> Iterator[str]:
    identified = identifies(callers, certificates=certificates)
    if callers.anybody and (identified or any(named for _, named in _sections(callers))):
        yield (
            "callers.anybody: true leaves tls.clientCaFile, callers.tokens, callers.schedule, "
            "callers.reserve and callers.read without a meaning; remove it, or all of them"
        )
    if is_loopback(host):
        return
    if not identified and not callers.anybody:
        yield (
            f"listen.host: {host!r} can be reached from elsewhere and nobody would be asked who "
            "they are: anybody could call bind. Set tls.clientCaFile (certificates) or "
            "callers.tokens (bearer tokens), or listen on 127.0.0.1; callers.anybody: true "
            "allows it all the same"
        )
    if callers.tokens is not None and not tls:
        yield (
            f"callers.tokens: needs tls.certFile and tls.keyFile at listen.host {host!r}: a token "
            "that travels in the clear is everybody's"
        )


def _lists(callers: CallersSettings, *, certificates: bool) -> Iterator[str]:
    if identifies(callers, certificates=certificates):
        shown = {"certificates": certificates, "organizations": certificates}
        shown |= dict.fromkeys(("users", "groups"), callers.tokens is not None)
        for section, named in _sections(callers):
            if named is not None:
                yield from _names(section, named, shown)
    elif any(named for _, named in _sections(callers)) and not callers.anybody:
        yield (
            "callers.schedule, callers.reserve and callers.read: nobody is asked who they are; set "
            "tls.clientCaFile or callers.tokens, or remove them"
        )
    yield from _everybody("schedule", callers.schedule, "who runs a scheduler")
    yield from _everybody("reserve", callers.reserve, "the webhook's ServiceAccount")


def _sections(callers: CallersSettings) -> tuple[tuple[str, NamedCallers | None], ...]:
    sections = ("schedule", callers.schedule), ("reserve", callers.reserve)
    return *sections, ("read", callers.read)


def _everybody(section: str, named: NamedCallers | None, whom: str) -> Iterator[str]:
    for group in sorted(EVERYBODY.intersection(named.groups if named else ())):
        yield f"callers.{section}.groups: {group!r} is everybody; name {whom}"


def _names(section: str, named: NamedCallers, shown: Mapping[str, bool]) -> Iterator[str]:
    """Look at one section; ``shown``: whether what a field names can be shown at all."""
    for field, possible in shown.items():
        listed: tuple[str, ...] = getattr(named, field)
        where = f"callers.{section}.{field}"
        if any(not name.strip() for name in listed):
            yield f"{where}: has an empty name; remove it"
        if listed and not possible:
            yield f"{where}: {_ASKED_FOR[field]}, or remove it"


def _tokens(tokens: Tokens | None) -> Iterator[str]:
    if tokens is None:
        return
    for audience in tokens.audiences:
        if not audience or any(c.isspace() for c in audience):
            yield (
                f"callers.tokens.audiences: {audience!r} is no audience; allowed is any text "
                "without spaces, such as muster.dev/extender"
            )
    yield from out_of_range((("callers.tokens.cacheSeconds", tokens.cache_seconds, 0, 3600),))
