"""Which clients may call the installed extender, and whether kube-scheduler is one of them.

Deployment muster-extender ──► its ConfigMap ──► listen, tls, callers ──► findings
Secret muster-scheduler-client ──► its certificate's common name ──► is it let in?
"""

from __future__ import annotations

import base64
import ipaddress
from typing import Final

import msgspec
from cryptography.x509.oid import NameOID

from muster.cli.verification import installedconfig
from muster.cli.verification.finding import CheckFinding, broken, ok, unknown, warning
from muster.cli.verification.x509files import load_bundle
from muster.kube.errors import Forbidden, KubeError, NotFound
from muster.kube.http.transport import HttpRequest, Transport

AREA: Final = "callers"
_NAME: Final = "muster-extender"
_KEY: Final = "extender.yaml"
_CLIENT: Final = "muster-scheduler-client"
_SEE: Final = "see callers in manifests/base/extender-config.yaml"
_LOOK: Final = "run this with credentials that may read it"


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the objects that are read; the extender itself checks all fields when it starts."""


class _Data(_Wire, frozen=True):
    """A ConfigMap or a Secret."""

    data: dict[str, str] = msgspec.field(default_factory=dict)


class _Listen(_Wire, frozen=True):
    host: str = "127.0.0.1"


class _Tls(_Wire, frozen=True):
    client_ca_file: str | None = None


class _Named(_Wire, frozen=True):
    certificates: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class _Tokens(_Wire, frozen=True):
    audiences: tuple[str, ...] = ()


class _Callers(_Wire, frozen=True):
    tokens: _Tokens | None = None
    schedule: _Named | None = None
    anybody: bool = False


class Configuration(_Wire, frozen=True):
    """The part of ExtenderConfiguration about callers."""

    listen: _Listen = _Listen()
    tls: _Tls | None = None
    callers: _Callers = _Callers()

    @property
    def certificates(self) -> bool:
        """Whether certificates are asked for."""
        return self.tls is not None and self.tls.client_ca_file is not None


async def check(transport: Transport, namespace: str) -> list[CheckFinding]:
    """Check the configuration of the installed extender."""
    try:
        config = await _configuration(transport, namespace)
    except NotFound as absent:
        remedy = "kubectl apply -k the overlay, unless the extender runs outside the cluster"
        return [unknown(AREA, f"the extender's configuration: {absent}", remedy)]
    except Forbidden as refused:
        return [unknown(AREA, str(refused), _LOOK)]
    return judge(config, await _scheduler(transport, namespace))


async def accepts_tokens(transport: Transport, namespace: str) -> bool:
    """Return whether the installed extender accepts tokens; True where that is not known."""
    try:
        return (await _configuration(transport, namespace)).callers.tokens is not None
    except (KubeError, msgspec.MsgspecError):
        return True


def judge(config: Configuration, scheduler: str | None) -> list[CheckFinding]:
    """Check the callers; ``scheduler``: the name in kube-scheduler's certificate, if known."""
    callers = config.callers
    if callers.anybody and not _is_here(config.listen.host):
        text = f"callers.anybody: true at {config.listen.host}: everybody may call bind"
        return [warning(AREA, text, _SEE)]
    if callers.tokens is None and not config.certificates:
        if _is_here(config.listen.host):
            return [ok(AREA, f"all clients on the machine that listens at {config.listen.host}")]
        text = f"listen.host {config.listen.host}: no credentials are needed: it does not start"
        return [broken(AREA, text, _SEE)]
    return [_schedulers(config, scheduler), _readers(config)]


def _schedulers(config: Configuration, scheduler: str | None) -> CheckFinding:
    named = config.callers.schedule
    if named is None:
        if config.certificates:
            text = "callers.schedule: is missing: every certificate of tls.clientCaFile may bind"
            return warning(AREA, text, "callers.schedule: {certificates: [kube-scheduler]}")
        named = _Named()
    listed = (*named.certificates, *named.organizations, *named.users, *named.groups)
    if not listed:
        return warning(AREA, "callers.schedule: is empty: kube-scheduler is turned away", _SEE)
    # An organization may admit it, too, but the certificate in Muster's Secret has none.
    if scheduler is not None and not named.organizations and scheduler not in named.certificates:
        text = (
            f"Secret {_CLIENT}: its certificate is of {scheduler}, and callers.schedule names "
            f"{', '.join(named.certificates) or 'no certificate'}"
        )
        return broken(AREA, text, f"add {scheduler} to callers.schedule.certificates")
    return ok(AREA, f"{', '.join(listed)} may schedule")


def _readers(config: Configuration) -> CheckFinding:
    tokens = config.callers.tokens
    if tokens is None:
        return ok(AREA, "certificates are mandatory, tokens are not accepted")
    meant = ", ".join(tokens.audiences) or "the API server"
    return ok(AREA, f"tokens made for {meant} are accepted")


async def _configuration(transport: Transport, namespace: str) -> Configuration:
    text = await installedconfig.configuration(transport, namespace, _NAME, _KEY)
    return msgspec.yaml.decode(text, type=Configuration)


async def _scheduler(transport: Transport, namespace: str) -> str | None:
    """Return the common name in the certificate for kube-scheduler, if it exists."""
    path = f"/api/v1/namespaces/{namespace}/secrets/{_CLIENT}"
    try:
        raw = await transport.send(HttpRequest("GET", path))
    except (NotFound, Forbidden):
        return None
    pem = msgspec.json.decode(raw, type=_Data).data.get("tls.crt", "")
    found = load_bundle(base64.b64decode(pem))
    names = found[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME) if found else []
    return str(names[-1].value) if names else None


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
