"""All checks in turn: a check that is not possible does not prevent the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from muster.cli.verification import (
    callers,
    foundconfig,
    installation,
    leader,
    rights,
    scheduler,
    servingcert,
    webhookcallers,
    webhooks,
)
from muster.cli.verification.finding import CheckFinding, broken, ok, unknown, warning
from muster.cli.verification.registration import PrintFailed
from muster.kube.errors import KubeError
from muster.kube.http import serverclock
from muster.kube.http.auth import Auth
from muster.kube.http.transport import HttpRequest, Retry, Transport

_SKEW_S: Final = 5.0  # half of the renew deadline: tokens, certificates and Leases allow that much
_OLDEST: Final = (1, 30)  # where pod scheduling gates and webhooks' matchConditions are stable
_TESTED: Final = ((1, 35), (1, 36))  # what `make test` runs on


@dataclass(frozen=True, slots=True)
class Settings:
    """What is checked."""

    #: The webhook's configuration, None: that in the cluster, else the shipped one.
    webhook_config: Path | None = None
    #: The namespace of Muster, "" to look for it.
    namespace: str = ""
    #: The namespace for the dry run of a pod.
    probe_namespace: str = "default"
    #: The scheduler configuration, None: searched in the cluster.
    scheduler_config: Path | None = None


class _Version(msgspec.Struct, rename="camel"):
    major: str
    minor: str
    git_version: str


async def verify(auth: Auth, settings: Settings) -> list[CheckFinding]:
    """Return the findings of every check; raises ``KubeError`` if there is no API server."""
    skew = await serverclock.skew(auth)
    now = datetime.now(UTC)
    server_now = now + timedelta(seconds=skew.ahead_s)
    findings = [_clock(skew)]
    async with Transport(auth, user_agent="muster-verify", retry=Retry(attempts=2)) as transport:
        if not settings.namespace:
            settings = replace(settings, namespace=await installation.namespace(transport))
        checks: tuple[tuple[str, Callable[[], Awaitable[list[CheckFinding]]]], ...] = (
            ("version", lambda: _version(transport)),
            (rights.AREA, lambda: _rights(transport, settings.namespace)),
            (
                webhooks.AREA,
                lambda: _webhooks(transport, settings, now),
            ),
            (servingcert.AREA, lambda: servingcert.check(transport, settings.namespace, now)),
            (callers.AREA, lambda: callers.check(transport, settings.namespace)),
            (webhookcallers.AREA, lambda: webhookcallers.check(transport, settings.namespace)),
            (leader.AREA, lambda: leader.check(transport, settings.namespace, server_now)),
            (scheduler.AREA, lambda: _scheduler(transport, settings, now)),
        )
        for area, check in checks:
            findings += await _guarded(area, check)
    return findings


async def _rights(transport: Transport, namespace: str) -> list[CheckFinding]:
    reviews = await callers.accepts_tokens(transport, namespace)
    return await rights.check(transport, namespace, reviews=reviews)


async def _webhooks(transport: Transport, settings: Settings, now: datetime) -> list[CheckFinding]:
    config, probed = settings.webhook_config, settings.probe_namespace
    if config is None:
        text = await installation.webhook_config(transport, settings.namespace)
        if text is not None:
            with installation.as_file(text) as path:
                return await webhooks.check(transport, path, probed, now)
    return await webhooks.check(transport, config, probed, now)


async def _scheduler(transport: Transport, settings: Settings, now: datetime) -> list[CheckFinding]:
    if settings.scheduler_config is not None:
        return scheduler.check(settings.scheduler_config, now)
    return await foundconfig.check(transport, settings.namespace, now)


async def _guarded(
    area: str, check: Callable[[], Awaitable[list[CheckFinding]]]
) -> list[CheckFinding]:
    try:
        return await check()
    except (KubeError, PrintFailed, msgspec.MsgspecError, ValueError) as error:
        return [unknown(area, str(error), "try again; if it stays, ask the API server's log")]


def _clock(skew: serverclock.Skew) -> CheckFinding:
    if skew.certain_s <= _SKEW_S:
        return ok("clock", f"differs from the API server's by {skew.possible_s:.1f} s at most")
    side = "ahead of" if skew.ahead_s > 0 else "behind"
    text = f"the API server's is {abs(skew.ahead_s):.0f} s {side} this machine's"
    return broken("clock", text, "let both follow the same time servers (chrony, timesyncd)")


async def _version(transport: Transport) -> list[CheckFinding]:
    raw = await transport.send(HttpRequest("GET", "/version"))
    found = msgspec.json.decode(raw, type=_Version)
    version = int(found.major), int(found.minor.rstrip("+"))
    if version < _OLDEST:
        text = f"{found.git_version}: scheduling gates and matchConditions need 1.30"
        return [broken("version", text, "upgrade Kubernetes")]
    if version not in _TESTED:
        tested = ", ".join(f"{major}.{minor}" for major, minor in _TESTED)
        return [warning("version", f"{found.git_version} is not among those tested", tested)]
    return [ok("version", found.git_version)]
