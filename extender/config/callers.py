"""Who may call the extender: the section ``callers``, and the checks of it.

The credentials of a caller, and what they allow if the section has no list of names::

    credentials                               schedule, reserve     read
    ────────────────────────────────────────  ────────────────────  ─────────────────────
    nothing, at a listener that identifies    no                    no
    certificate signed by tls.clientCaFile    yes                   yes
    bearer token (callers.tokens)             no                    whom RBAC lets `get`

What a node's program may ask about its own node (``node``) is for tokens whose owner is named and
that were made for a pod on that node.

A listener on a loopback address with neither ``clientCaFile`` nor ``tokens`` does not identify
callers: every process on that machine may do everything.
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
    """Settings for bearer tokens; the API server is asked for their owners (TokenReview)."""

    #: a token must be for one of these audiences; empty: for the API server, like the token that
    #: every pod has. A stolen token for ``muster.dev/extender`` only is useless elsewhere
    audiences: tuple[str, ...] = ()
    #: how long an answer is cached
    cache_seconds: float = 60.0


class NamedCallers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Names of callers.

    Certificates and tokens have separate lists, because a certificate authority and an identity
    provider may issue the same name.
    """

    #: common names of certificates
    certificates: tuple[str, ...] = ()
    #: organizations of certificates
    organizations: tuple[str, ...] = ()
    #: names of token owners
    users: tuple[str, ...] = ()
    #: groups of token owners
    groups: tuple[str, ...] = ()


class Readers(NamedCallers, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Who may read."""

    #: whether owners of tokens may also read if RBAC permits them to ``get`` the path as a
    #: nonResourceURL, as for the metrics of other components
    rbac: bool = True


class CallersSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Who may call."""

    #: null: tokens are not accepted
    tokens: Tokens | None = None
    #: who may call filter, prioritize, preempt and bind
    schedule: NamedCallers | None = None
    #: who may call all other routes but health
    read: Readers | None = None
    #: whether every caller may do everything, even at an address that other machines can reach
    anybody: bool = False
    #: who may ask for reservations: the webhook
    reserve: NamedCallers | None = None
    #: who may ask for the pods of the node that their token names: the device plugin. By ``users``
    #: and ``groups`` alone, since a certificate names no node
    node: NamedCallers | None = None


def identifies(callers: CallersSettings, *, certificates: bool) -> bool:
    """Return whether callers need credentials. ``certificates``: whether clientCaFile is set."""
    return certificates or callers.tokens is not None


def problems(callers: CallersSettings, host: str, *, tls: bool, certificates: bool) -> list[str]:
    """Return one line per invalid value. ``host``: listen.host."""
    return [
        *_exposure(callers, host, tls=tls, certificates=certificates),
        *_lists(callers, certificates=certificates),
        *_tokens(callers.tokens),
    ]


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can only be reached from this machine."""
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
            "callers.reserve, callers.node and callers.read without a meaning; remove it, or all "
            "of them"
        )
    if is_loopback(host):
        return
    if not identified and not callers.anybody:
        yield (
            f"listen.host: {host!r} can be reached from other machines and callers would not be "
            "identified: every caller could call bind. Set tls.clientCaFile (certificates) or "
            "callers.tokens (bearer tokens), or listen on 127.0.0.1; callers.anybody: true "
            "allows it nevertheless"
        )
    if callers.tokens is not None and not tls:
        yield (
            f"callers.tokens: needs tls.certFile and tls.keyFile at listen.host {host!r}: a token "
            "without TLS can be read by others on its way"
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
            "callers.schedule, callers.reserve, callers.node and callers.read: callers are not "
            "identified; set tls.clientCaFile or callers.tokens, or remove them"
        )
    yield from _everybody("schedule", callers.schedule, "who runs a scheduler")
    yield from _everybody("reserve", callers.reserve, "the webhook's ServiceAccount")
    yield from _everybody("node", callers.node, "the device plugin's ServiceAccount")
    if callers.node is not None and (callers.node.certificates or callers.node.organizations):
        yield (
            "callers.node: certificates and organizations admit nobody, as a certificate names no "
            "node; name the device plugin's ServiceAccount in users"
        )


def _sections(callers: CallersSettings) -> tuple[tuple[str, NamedCallers | None], ...]:
    sections = ("schedule", callers.schedule), ("reserve", callers.reserve)
    return *sections, ("read", callers.read), ("node", callers.node)


def _everybody(section: str, named: NamedCallers | None, whom: str) -> Iterator[str]:
    for group in sorted(EVERYBODY.intersection(named.groups if named else ())):
        yield f"callers.{section}.groups: {group!r} includes every caller; name {whom}"


def _names(section: str, named: NamedCallers, shown: Mapping[str, bool]) -> Iterator[str]:
    """Check one section; ``shown``: by field, whether its kind of credentials is accepted."""
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
