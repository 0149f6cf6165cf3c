"""Whether the extender's certificate and kube-scheduler's fit each other.

Each side trusts the ``ca.crt`` beside its own certificate: the extender for clients, kube-scheduler
for the server. A pair that does not fit leaves every pod with an accelerator
waiting, so it is judged before anything is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import NameOID

_KEYS: Final = ("tls.crt", "tls.key", "ca.crt")
_CALLER: Final = "kube-scheduler"  # callers.schedule of the extender's configuration

#: The entries of a Secret of type kubernetes.io/tls with ``ca.crt``, decoded.
SecretData = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """Both Secrets, by name, None for one that is missing."""

    namespace: str
    extender_name: str
    scheduler_name: str
    extender: SecretData | None
    scheduler: SecretData | None

    def problems(self, now: datetime, at_least: timedelta) -> list[str]:
        """Return what is wrong, a sentence each; [] where both are valid for that much longer."""
        server = _Side(f"Secret {self.namespace}/{self.extender_name}", self.extender)
        client = _Side(f"Secret {self.namespace}/{self.scheduler_name}", self.scheduler)
        alone = [p for side in (server, client) for p in side.problems(now, at_least)]
        return alone or [
            *_lacks_name(server, f"muster-extender.{self.namespace}.svc"),
            *_is_not_the_caller(client),
            *_is_not_trusted(server, client, "kube-scheduler does not trust the extender"),
            *_is_not_trusted(client, server, "the extender does not trust kube-scheduler"),
        ]


@dataclass(frozen=True, slots=True)
class _Side:
    what: str
    data: SecretData | None

    def problems(self, now: datetime, at_least: timedelta) -> list[str]:
        """Return what is wrong with this Secret whatever the other one holds."""
        if self.data is None:
            return [f"{self.what}: is missing"]
        if missing := [key for key in _KEYS if not self.data.get(key)]:
            return [f"{self.what}: lacks {', '.join(missing)}"]
        try:
            leaf, authorities, key = self.leaf, self.authorities, self.public_key
        except (ValueError, TypeError) as error:
            return [f"{self.what}: is not PEM of certificates and an unencrypted key: {error}"]
        if key != _public(leaf):
            return [f"{self.what}: tls.key is not the key of tls.crt"]
        return [
            f"{self.what} {name}: {problem}"
            for name, certificate in (("tls.crt", leaf), ("ca.crt", authorities[0]))
            if (problem := _not_in_time(certificate, now, at_least))
        ]

    @property
    def leaf(self) -> x509.Certificate:
        """The first certificate of tls.crt; raises ValueError."""
        return x509.load_pem_x509_certificates((self.data or {})["tls.crt"])[0]

    @property
    def authorities(self) -> list[x509.Certificate]:
        """The certificates of ca.crt; raises ValueError."""
        return x509.load_pem_x509_certificates((self.data or {})["ca.crt"])

    @property
    def public_key(self) -> bytes:
        """The public half of tls.key; raises ValueError or TypeError."""
        key = serialization.load_pem_private_key((self.data or {})["tls.key"], None)
        return _der(key.public_key().public_bytes)


def _public(certificate: x509.Certificate) -> bytes:
    return _der(certificate.public_key().public_bytes)


def _der(
    encode: Callable[[serialization.Encoding, serialization.PublicFormat], bytes],
) -> bytes:
    return encode(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _not_in_time(certificate: x509.Certificate, now: datetime, at_least: timedelta) -> str:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now < begin:
        return f"is valid from {begin:%Y-%m-%d %H:%M} UTC only"
    if end <= now:
        return f"expired on {end:%Y-%m-%d}"
    return f"expires on {end:%Y-%m-%d}" if end < now + at_least else ""


def _lacks_name(server: _Side, name: str) -> list[str]:
    try:
        found = server.leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = found.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    if name in names:
        return []
    held = ", ".join(sorted(names)) or "no name"
    return [f"{server.what} tls.crt: is valid for {held}; {name} is needed"]


def _is_not_the_caller(client: _Side) -> list[str]:
    found = client.leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    names = [str(attribute.value) for attribute in found]
    if names == [_CALLER]:
        return []
    return [f"{client.what} tls.crt: common name {', '.join(names)!r}; {_CALLER!r} is needed"]


def _is_not_trusted(shown: _Side, trusting: _Side, consequence: str) -> list[str]:
    """Check that an authority of the trusting side signed what is shown, itself or over a chain."""
    chain = x509.load_pem_x509_certificates((shown.data or {})["tls.crt"])
    for certificate in chain:
        if any(_signed(certificate, authority) for authority in trusting.authorities):
            return []
    text = f"{shown.what} tls.crt: is not signed by ca.crt of {trusting.what}: {consequence}"
    return [text]


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
