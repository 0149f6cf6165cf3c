"""The section `callers`: what contradicts itself, or would let everybody in, is refused."""

import pytest

from extender.config.callers import is_loopback
from extender.config.settings import ExtenderConfig, parse
from muster.observability.configfile import ConfigError

SERVING = "tls: {certFile: c, keyFile: k}"
ASKING = "tls: {certFile: c, keyFile: k, clientCaFile: ca}"
OUTSIDE = "listen: {host: 0.0.0.0}"


def config(*lines: str) -> ExtenderConfig:
    return parse("\n".join(lines).encode(), source="f")


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ([OUTSIDE], ["listen.host: '0.0.0.0'", "every caller could call bind", "clientCaFile"]),
        ([OUTSIDE, SERVING], ["every caller could call bind"]),
        (["listen: {host: '::'}"], ["listen.host: '::'"]),
        (["listen: {host: ''}"], ["listen.host: ''"]),
        (["listen: {host: node-1}"], ["listen.host: 'node-1'"]),
        ([OUTSIDE, "callers: {tokens: {}}"], ["callers.tokens: needs tls.certFile"]),
        (
            [OUTSIDE, ASKING, "callers: {anybody: true}"],
            ["callers.anybody: true leaves tls.clientCaFile"],
        ),
        (["callers: {schedule: {users: [a]}}"], ["callers are not identified"]),
        (["callers: {read: {}}"], ["callers are not identified"]),
        (
            [ASKING, "callers: {schedule: {users: [a]}}"],
            ["callers.schedule.users: no token is accepted", "callers.tokens"],
        ),
        (
            ["callers: {tokens: {}, read: {certificates: [a]}}"],
            ["callers.read.certificates: no certificate is asked for", "tls.clientCaFile"],
        ),
        (
            ["callers: {tokens: {}, schedule: {groups: ['system:authenticated']}}"],
            ["callers.schedule.groups: 'system:authenticated' includes every caller"],
        ),
        ([ASKING, "callers: {read: {organizations: ['']}}"], ["callers.read.organizations: has"]),
        (["callers: {tokens: {audiences: ['']}}"], ["callers.tokens.audiences: ''"]),
        (["callers: {tokens: {audiences: ['a b']}}"], ["'a b'", "muster.dev/extender"]),
        (["callers: {tokens: {cacheSeconds: -1}}"], ["callers.tokens.cacheSeconds", "0 to 3600"]),
        (["callers: {token: {}}"], ["callers", "token", "tokens"]),
        (["callers: {read: {user: [a]}}"], ["callers.read", "users"]),
    ],
)
def test_a_mistake_is_named_with_what_to_do(lines: list[str], parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        config(*lines)
    for part in parts:
        assert part in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["spareCount: 1"],
        ["listen: {host: localhost}"],
        ["listen: {host: '::1'}"],
        ["listen: {host: 127.0.0.2}"],
        ["callers: {tokens: {}}"],
        [OUTSIDE, ASKING],
        [OUTSIDE, SERVING, "callers: {tokens: {}}"],
        [OUTSIDE, "callers: {anybody: true}"],
        [OUTSIDE, ASKING, "callers: {schedule: {}}"],
        [OUTSIDE, ASKING, "callers: {tokens: {}, read: {groups: [sre], rbac: false}}"],
    ],
)
def test_what_is_safe_or_said_on_purpose_is_taken(lines: list[str]) -> None:
    config(*lines)


def test_only_addresses_that_never_leave_the_machine_are_loopback() -> None:
    outside = ("", "0.0.0.0", "::", "10.0.0.1", "localhost.x")  # noqa: S104  compared, not bound to
    assert not any(is_loopback(host) for host in outside)
