"""Whether the installed webhook reserves room: only for an API server that shows who it is.

Deployment muster-webhook ──► its ConfigMap ──► reservations, callers ──► findings
                          ──► Secret muster-webhook-callers: is there a token to show?
"""

from __future__ import annotations

from typing import Final

import msgspec

from muster.cli.ops.admissioncalls import SECRET
from muster.cli.verification.finding import CheckFinding, ok, warning
from muster.cli.verification.installedconfig import configuration
from muster.kube.errors import Forbidden, NotFound
from muster.kube.http.transport import HttpRequest, Transport

AREA: Final = "callers"
_NAME: Final = "muster-webhook"
_KEY: Final = "webhook.yaml"
_SEE: Final = "see docs/runbooks/install.md, Reservations; without it gangs are gated"


class _Shown(msgspec.Struct, frozen=True, rename="camel"):
    token_file: str | None = None


class WebhookCallers(msgspec.Struct, frozen=True, rename="camel"):
    """The part of WebhookConfiguration about who asks; the webhook itself checks all fields."""

    reservations: dict[str, object] | None = None
    callers: _Shown | None = None


async def check(transport: Transport, namespace: str) -> list[CheckFinding]:
    """Check the configuration of the installed webhook; nothing is found where there is none."""
    try:
        text = await configuration(transport, namespace, _NAME, _KEY)
    except (NotFound, Forbidden):
        return []
    config = msgspec.yaml.decode(text, type=WebhookCallers)
    return [judge(config, has_secret=await _has_secret(transport, namespace))]


def judge(config: WebhookCallers, *, has_secret: bool | None) -> CheckFinding:
    """Return whether room is reserved; ``has_secret``: None where that is not known."""
    if config.reservations is None:
        return ok(AREA, "the webhook reserves nothing: reservations is not configured")
    if config.callers is None:
        text = "the webhook reserves nothing: callers is missing, so anybody could ask"
        return warning(AREA, text, _SEE)
    if config.callers.token_file is not None and has_secret is False:
        text = f"the webhook reserves nothing: Secret {SECRET} does not exist"
        return warning(AREA, text, _SEE)
    return ok(AREA, "the webhook reserves for an API server that shows who it is")


async def _has_secret(transport: Transport, namespace: str) -> bool | None:
    try:
        await transport.send(HttpRequest("GET", f"/api/v1/namespaces/{namespace}/secrets/{SECRET}"))
    except NotFound:
        return False
    except Forbidden:
        return None
    return True
