"""An authority, the extender's certificate and kube-scheduler's, as files and as Secrets.

The authority's key is not written anywhere: for new certificates all of them are made anew, and no
key that gives access to `bind` for ever can leak. For certificates that are renewed use
cert-manager (manifests/components/cert-manager).
"""

from __future__ import annotations

import base64
import ipaddress
import os
import secrets as randomness
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Required, TypedDict

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster.cli.ops import admissioncalls

EXTENDER_SECRET: Final = "muster-extender-tls"  # noqa: S105  a name
SCHEDULER_SECRET: Final = "muster-scheduler-client"  # noqa: S105  a name

_SECRET_MODE: Final = 0o600
_PUBLIC_MODE: Final = 0o644
_LONGEST_DAYS: Final = 3650
_TOKEN_BYTES: Final = 32
_APISERVER: Final = "/etc/kubernetes/muster"  # where kube-apiserver finds its files
_CLOCKS: Final = timedelta(hours=1)  # certificates begin that much earlier: clocks differ
_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


class SecretMetadata(TypedDict):
    """Where a Secret lies."""

    name: str
    namespace: str


class SecretManifest(TypedDict, total=False):
    """A Secret as it is written."""

    apiVersion: Required[str]
    kind: Required[str]
    type: str
    metadata: Required[SecretMetadata]
    stringData: dict[str, str]
    data: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def chain(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The key as unencrypted PKCS#8 PEM."""
        return self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )


@dataclass(frozen=True, slots=True)
class _Life:
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Issued:
    """What `make` made: both certificates with their keys, and the authority's certificate."""

    namespace: str
    #: PEM.
    authority: bytes
    extender: _Pair
    scheduler: _Pair

    @property
    def extender_secret(self) -> SecretManifest:
        """The Secret that the extender's pods mount."""
        return _secret(EXTENDER_SECRET, self.namespace, self.extender, self.authority)

    @property
    def scheduler_secret(self) -> SecretManifest:
        """The Secret that a second kube-scheduler mounts."""
        return _secret(SCHEDULER_SECRET, self.namespace, self.scheduler, self.authority)


def write(
    directory: Path, namespace: str, addresses: tuple[str, ...], days: int
) -> list[tuple[Path, str]]:
    """Write the files and return each with its purpose.

    Raises ``FileExistsError`` before anything is overwritten, and ``ValueError`` for an invalid
    address or lifetime.
    """
    made = make(namespace, addresses, days)
    token = randomness.token_urlsafe(_TOKEN_BYTES)
    secrets = [callers(token, namespace), made.extender_secret, made.scheduler_secret]
    manifest = yaml.safe_dump_all(secrets, sort_keys=False).encode()
    files = (
        ("secrets.yaml", manifest, _SECRET_MODE, "kubectl apply -f it; then delete it"),
        ("ca.crt", made.authority, _PUBLIC_MODE, "tlsConfig.caFile of kube-scheduler"),
        ("scheduler.crt", made.scheduler.chain, _PUBLIC_MODE, "tlsConfig.certFile"),
        ("scheduler.key", made.scheduler.key_pem, _SECRET_MODE, "tlsConfig.keyFile"),
        *_shown_by_the_api_server(token, namespace),
    )
    return _put_all(directory, files)


def make(namespace: str, addresses: tuple[str, ...], days: int) -> Issued:
    """Make an authority and what it signs, valid for ``days``.

    Raises ``ValueError`` for an invalid address or lifetime.
    """
    if not 1 <= days <= _LONGEST_DAYS:
        raise ValueError(f"--days {days}: allowed is 1 to {_LONGEST_DAYS}")
    now = datetime.now(UTC)
    life = _Life(now - _CLOCKS, now + timedelta(days=days))
    authority = _authority("muster extender authority", life)
    names: list[x509.GeneralName] = [
        x509.DNSName(f"muster-extender.{namespace}.svc"),
        x509.DNSName("localhost"),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
    ]
    # Its own probes show the extender's certificate as a client.
    both = (_SERVER, _CLIENT)
    extender = _issue(authority, "muster extender", names, both, life)
    caller: list[x509.GeneralName] = [x509.DNSName("kube-scheduler")]
    scheduler = _issue(authority, "kube-scheduler", caller, (_CLIENT,), life)
    return Issued(namespace, authority.chain, extender, scheduler)


def callers(token: str, namespace: str) -> SecretManifest:
    """Return the Secret with the token that the API server shows to the webhook."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": admissioncalls.SECRET, "namespace": namespace},
        "stringData": {"token": token},
    }


def _shown_by_the_api_server(token: str, namespace: str) -> tuple[tuple[str, bytes, int, str], ...]:
    host = f"muster-webhook.{namespace}.svc"
    purposes = {
        admissioncalls.ADMISSION: "--admission-control-config-file of kube-apiserver",
        admissioncalls.KUBECONFIG: f"beside it, in {_APISERVER}",
    }
    made = admissioncalls.files(token, user=host, directory=_APISERVER)
    return tuple((name, text.encode(), _SECRET_MODE, purposes[name]) for name, text in made)


def _authority(name: str, life: _Life) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    builder = _builder(subject, subject, key, life).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    return _Pair(builder.sign(key, hashes.SHA256()), key)


def _issue(
    authority: _Pair,
    name: str,
    names: list[x509.GeneralName],
    usages: tuple[x509.ObjectIdentifier, ...],
    life: _Life,
) -> _Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate.subject
    builder = (
        _builder(_subject(name), issuer, key, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
    )
    return _Pair(builder.sign(authority.key, hashes.SHA256()), key)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, life: _Life
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(life.begin)
        .not_valid_after(life.end)
    )


def _put_all(
    directory: Path, files: tuple[tuple[str, bytes, int, str], ...]
) -> list[tuple[Path, str]]:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, *_ in files:
        if (directory / name).exists():
            raise FileExistsError(f"{directory / name}: exists; name another --output or move it")
    for name, data, mode, _ in files:
        descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    return [(directory / name, purpose) for name, _, _, purpose in files]


def _secret(name: str, namespace: str, pair: _Pair, ca: bytes) -> SecretManifest:
    parts = {"tls.crt": pair.chain, "tls.key": pair.key_pem, "ca.crt": ca}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(value).decode() for key, value in parts.items()},
    }
