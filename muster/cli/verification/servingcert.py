"""Whether the extender's serving certificate exists, is valid, and has the names in use."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Final

import msgspec
from cryptography.exceptions import InvalidSignature

from muster.cli.verification.finding import CheckFinding, broken, ok, unknown
from muster.cli.verification.x509files import load_bundle, names_of, validity
from muster.kube.errors import Forbidden, NotFound
from muster.kube.http.transport import HttpRequest, Transport

AREA: Final = "certificates"
SECRET: Final = "muster-extender-tls"  # noqa: S105  a name
_MAKE: Final = "muster certificates, or cert-manager (manifests/components/cert-manager)"


class _Secret(msgspec.Struct):
    data: dict[str, str] = msgspec.field(default_factory=dict)


async def check(transport: Transport, namespace: str, now: datetime) -> list[CheckFinding]:
    """Check the Secret with the extender's serving certificate."""
    what = f"Secret {namespace}/{SECRET}"
    try:
        path = f"/api/v1/namespaces/{namespace}/secrets/{SECRET}"
        raw = await transport.send(HttpRequest("GET", path))
    except NotFound:
        return [broken(AREA, f"{what} is missing: the extender's pods do not start", _MAKE)]
    except Forbidden as refused:
        return [unknown(AREA, f"{what}: {refused}", "run this with credentials that may read it")]
    data = msgspec.json.decode(raw, type=_Secret).data
    return _judge(what, namespace, {key: base64.b64decode(v) for key, v in data.items()}, now)


def _judge(what: str, namespace: str, data: dict[str, bytes], now: datetime) -> list[CheckFinding]:
    missing = [key for key in ("tls.crt", "tls.key", "ca.crt") if not data.get(key)]
    if missing:
        return [broken(AREA, f"{what}: lacks {', '.join(missing)}", _MAKE)]
    for key in ("tls.crt", "ca.crt"):
        if (finding := validity(AREA, f"{what} {key}", data[key], now)) is not None:
            return [finding]
    leaf, authorities = load_bundle(data["tls.crt"])[0], load_bundle(data["ca.crt"])
    name = f"muster-extender.{namespace}.svc"
    if name not in names_of(leaf):
        text = f"{what}: is not valid for {name}, only for {', '.join(sorted(names_of(leaf)))}"
        return [broken(AREA, text, _MAKE)]
    for authority in authorities:
        try:
            leaf.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return [ok(AREA, f"{what}: valid until {leaf.not_valid_after_utc:%Y-%m-%d}")]
    return [broken(AREA, f"{what}: tls.crt is not signed by ca.crt", _MAKE)]
