"""The certificates between kube-scheduler and the extender, as Secrets of the cluster.

::

    read both Secrets ──fit, and last long enough──► nothing to do
            │ else
            ▼
    make all anew ──► write the Secrets ──some were there──► restart the pods that hold the old ones

The authority's key is not kept, so both sides change together; kube-scheduler reads its files once.
The token that the API server shows to the webhook is made once and stays: files of kube-apiserver
hold it, too.
"""

from __future__ import annotations

import base64
import secrets as randomness
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from muster.cli.ops import admissioncalls, issuing
from muster.cli.ops.certificatepair import CertificatePair, SecretData
from muster.kube.errors import NotFound
from muster.kube.http.auth import Auth
from muster.kube.http.transport import HttpRequest, Retry, Transport

#: On Secrets that were made here; `muster withdraw` deletes those, and no others.
MADE_HERE: Final = ("app.kubernetes.io/managed-by", "muster-certificates")
_MERGE: Final = "application/merge-patch+json"
_TOKEN_BYTES: Final = 32
_RESTARTED: Final = ("muster-extender", "muster-scheduler")  # Deployments that hold certificates
_ROLLED: Final = "muster.dev/certificates-made-at"  # on their pods: a change rolls them


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which certificates, and for how long."""

    namespace: str
    #: Service addresses of the extender beside its name.
    addresses: tuple[str, ...] = ()
    days: int = 365
    #: Made anew when less is left, in days; 0: when they expired.
    renew_before_days: int = 0


class _Secret(msgspec.Struct):
    data: dict[str, str] = msgspec.field(default_factory=dict)


async def ensure(auth: Auth, wanted: Wanted) -> list[str]:
    """Make what is missing, does not fit, or expires soon; return what was done, a line each.

    Raises ``KubeError`` where the API server refuses, ``ValueError`` for an invalid address or
    lifetime.
    """
    async with Transport(auth, user_agent="muster-certificates", retry=Retry()) as transport:
        pair = await _read(
            transport, wanted.namespace, issuing.EXTENDER_SECRET, issuing.SCHEDULER_SECRET
        )
        reasons = pair.problems(datetime.now(UTC), timedelta(days=wanted.renew_before_days))
        done = await _token(transport, wanted.namespace)
        if not reasons:
            return [*done, "the certificates fit and are valid long enough: nothing to do"]
        made = issuing.make(wanted.namespace, wanted.addresses, wanted.days)
        for secret in (made.extender_secret, made.scheduler_secret):
            await _write(transport, wanted.namespace, secret)
        done += [*reasons, f"made certificates that are valid for {wanted.days} days"]
        if pair.extender is not None or pair.scheduler is not None:
            done += await _restart(transport, wanted.namespace)
        return done


async def problems(auth: Auth, namespace: str, extender: str, scheduler: str) -> list[str]:
    """Return what is wrong with two Secrets that somebody else made; [] for nothing."""
    async with Transport(auth, user_agent="muster-certificates", retry=Retry()) as transport:
        pair = await _read(transport, namespace, extender, scheduler)
    return pair.problems(datetime.now(UTC), timedelta())


async def _read(
    transport: Transport, namespace: str, extender: str, scheduler: str
) -> CertificatePair:
    return CertificatePair(
        namespace,
        extender,
        scheduler,
        await _secret(transport, namespace, extender),
        await _secret(transport, namespace, scheduler),
    )


async def _secret(transport: Transport, namespace: str, name: str) -> SecretData | None:
    try:
        raw = await transport.send(HttpRequest("GET", f"{_secrets(namespace)}/{name}"))
    except NotFound:
        return None
    data = msgspec.json.decode(raw, type=_Secret).data
    return {key: base64.b64decode(value) for key, value in data.items()}


async def _token(transport: Transport, namespace: str) -> list[str]:
    if await _secret(transport, namespace, admissioncalls.SECRET) is not None:
        return []
    token = randomness.token_urlsafe(_TOKEN_BYTES)
    await _write(transport, namespace, issuing.callers(token, namespace))
    return [f"made the token of Secret {namespace}/{admissioncalls.SECRET}"]


async def _write(transport: Transport, namespace: str, secret: issuing.SecretManifest) -> None:
    """Create the Secret, or replace the data of the one that is there."""
    labels = dict([MADE_HERE, ("app.kubernetes.io/part-of", "muster")])
    metadata = {**secret["metadata"], "labels": labels}
    body = msgspec.json.encode({**secret, "metadata": metadata})
    path = f"{_secrets(namespace)}/{metadata['name']}"
    try:
        await transport.send(HttpRequest("PATCH", path, body=body, content_type=_MERGE))
    except NotFound:
        await transport.send(HttpRequest("POST", _secrets(namespace), body=body))


async def _restart(transport: Transport, namespace: str) -> list[str]:
    note = {_ROLLED: datetime.now(UTC).isoformat(timespec="seconds")}
    body = msgspec.json.encode({"spec": {"template": {"metadata": {"annotations": note}}}})
    done = []
    for name in _RESTARTED:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        try:
            await transport.send(HttpRequest("PATCH", path, body=body, content_type=_MERGE))
        except NotFound:
            continue
        done.append(f"restarted the pods of Deployment {namespace}/{name}")
    return done


def _secrets(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets"
