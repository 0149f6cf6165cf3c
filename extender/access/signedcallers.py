"""Holders of the cluster's client certificates, by the signature of their request.

::

    Client-Cert, Signature ──► signed by the certificate's key? fresh? ──► subject ──► user, groups
                                   │ the certificate is of the cluster's client CA?
                                   └─ ConfigMap kube-system/extension-apiserver-authentication

A subject becomes a user as in kube-apiserver: the common name is the user, organizations are its
groups. Such a caller is judged as the owner of a token is, by RBAC, never as the holder of a
certificate of ``tls.clientCaFile``: the cluster's CA is another authority, and what it names
kube-scheduler is not let in to schedule.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from extender.access.answercache import AnswerCache
from muster.apiwire.callersignature import FRESH_S, ShownSignature, SignedRequest
from muster.kube.client import KubeClient
from muster.kube.reviews import UserInfo, client_authorities

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

AUTHENTICATED: Final = "system:authenticated"  # kube-apiserver adds it to everybody it knows
_CACHE_S: Final = 300.0  # how long the cluster's client CA is kept; it changes in years
_RETRY_S: Final = 10.0  # where the cluster publishes none
_LEAST_RSA_BITS: Final = 2048  # as OpenSSL's default level asks in a handshake


class NotSigned(Exception):
    """The signature or its certificate is not accepted; the text says why."""


@dataclass(slots=True)
class SignedCallers:
    """Verifies signatures. ``clock``: epoch seconds; ``monotonic``: for the cache."""

    client: KubeClient
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    _authorities: AnswerCache[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Make the cache; the cluster's CA is read when the first such caller comes."""
        self._authorities = AnswerCache(_CACHE_S, _RETRY_S, self.monotonic)

    async def holder(self, shown: ShownSignature, method: str, target: str) -> UserInfo:
        """Return who signed the request.

        Raises ``NotSigned``; ``KubeError`` or ``Busy`` if the cluster's CA cannot be read. The
        caller compares the digest with the body.
        """
        now = self.clock()
        if abs(now - shown.created) > FRESH_S:
            raise NotSigned(
                f"the signature was made {now - shown.created:+.0f} s ago by this clock; allowed "
                f"are {FRESH_S} s: compare the clocks of both machines"
            )
        pem = await self._authorities.get("", lambda: client_authorities(self.client))
        if not pem:
            raise NotSigned(
                "this cluster publishes no CA of client certificates (ConfigMap "
                "kube-system/extension-apiserver-authentication, client-ca-file)"
            )
        request = SignedRequest(method, target, shown.digest, shown.created)
        return await asyncio.to_thread(_verified, shown, request, pem, now)


def _verified(shown: ShownSignature, request: SignedRequest, pem: str, now: float) -> UserInfo:
    from cryptography import x509  # noqa: PLC0415  a few MiB that most extenders never need

    try:
        certificate = x509.load_der_x509_certificate(shown.certificate)
        authorities = x509.load_pem_x509_certificates(pem.encode())
        _check_issuer(certificate, authorities)
        _check_use(certificate, now)
        _check_signature(certificate, request.base(), shown.signature)
        return _user(certificate)
    except ValueError as error:  # what is no certificate, in as many ways as DER has
        raise NotSigned(f"the certificate cannot be read: {error}") from error


def _check_issuer(certificate: "Certificate", authorities: "list[Certificate]") -> None:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  lazy

    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return
    raise NotSigned("the certificate is not signed by the cluster's client CA itself")


def _check_use(certificate: "Certificate", now: float) -> None:
    """Check validity and purpose, as kube-apiserver does (ExtKeyUsageClientAuth)."""
    from cryptography import x509  # noqa: PLC0415  lazy
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415  lazy

    at = datetime.fromtimestamp(now, UTC)
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        until = certificate.not_valid_after_utc
        raise NotSigned(f"the certificate is not valid now; it ends at {until:%Y-%m-%dT%H:%M:%SZ}")
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return  # for any purpose, as Go's crypto/x509 reads it
    allowed = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
    if allowed.isdisjoint(usages):
        raise NotSigned("the certificate is not for clients: clientAuth is not among its purposes")


def _check_signature(certificate: "Certificate", text: bytes, signature: bytes) -> None:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  lazy
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415  lazy
    from cryptography.hazmat.primitives.asymmetric import (  # noqa: PLC0415  lazy
        ec,
        ed25519,
        padding,
        rsa,
    )

    key = certificate.public_key()
    try:
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, text, ec.ECDSA(hashes.SHA256()))
        elif isinstance(key, rsa.RSAPublicKey) and key.key_size >= _LEAST_RSA_BITS:
            key.verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
        elif isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(signature, text)
        else:
            raise NotSigned("the certificate's key: allowed are ECDSA, Ed25519, RSA of 2048 bits")
    except InvalidSignature:
        raise NotSigned("the signature is not of this request by the certificate's key") from None


def _user(certificate: "Certificate") -> UserInfo:
    from cryptography.x509.oid import NameOID  # noqa: PLC0415  lazy

    subject = certificate.subject
    names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if len(names) != 1 or not names[0]:
        raise NotSigned(f"the certificate has {len(names)} common names; needed is one")
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return UserInfo(names[0], groups=(*(str(group.value) for group in groups), AUTHENTICATED))
