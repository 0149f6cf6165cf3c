"""A certificate authority of one's own, and the serving certificates it signs.

EC P-256 keys (fast to make, fast to sign with), random serials, the extensions that Go's
verifier insists on. Certificates begin an hour in the past, because clocks differ.
Times are arguments, always aware and in UTC.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.errors import CertificateError

CLOCK_SKEW: Final = timedelta(hours=1)
RENEW_AFTER: Final = 2 / 3  # of a lifetime; the last third is the reserve for outages
AUTHORITY_NAME: Final = "muster webhook authority"


@dataclass(frozen=True, slots=True)
class Names:
    """What a serving certificate is valid for."""

    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA certificate with its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def created(self) -> datetime:
        """When it was made."""
        return self.certificate.not_valid_before_utc + CLOCK_SKEW

    @property
    def expires(self) -> datetime:
        """When it stops being valid."""
        return self.certificate.not_valid_after_utc


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A serving certificate: PEM chain and PEM key, its issuer and its times."""

    chain: bytes
    key: bytes
    issuer: x509.Certificate
    created: datetime
    expires: datetime

    def is_due(self, now: datetime) -> bool:
        """Return whether it is time for a new one."""
        return is_due(self.created, self.expires, now)


def is_due(created: datetime, expires: datetime, now: datetime) -> bool:
    """Return whether two thirds of a lifetime are over."""
    return now >= created + (expires - created) * RENEW_AFTER


def new_authority(now: datetime, lifetime: timedelta) -> Authority:
    """Make a self-signed authority valid from ``now`` for ``lifetime``.

    Every authority has the same subject; verifiers distinguish them by key identifier.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY_NAME)])
    builder = (
        _builder(subject, subject, key.public_key(), now, lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return Authority(builder.sign(key, hashes.SHA256()), key)


def issue(
    authority: Authority, names: Names, now: datetime, lifetime: timedelta
) -> IssuedCertificate:
    """Sign a serving certificate; it never outlives the authority."""
    lifetime = min(lifetime, authority.expires - now)
    if lifetime <= timedelta(0):
        raise CertificateError(f"the authority expired at {authority.expires}: rotate it first")
    key = ec.generate_private_key(ec.SECP256R1())
    alternative = x509.SubjectAlternativeName(
        [
            *(x509.DNSName(name) for name in names.dns),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in names.addresses),
        ]
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "muster webhook")])
    issuer = authority.certificate
    certificate = (
        _builder(subject, issuer.subject, key.public_key(), now, lifetime)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(alternative, critical=False)
        .add_extension(_authority_identifier(authority), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    return IssuedCertificate(pem(certificate), key_pem(key), issuer, now, now + lifetime)


def pem(certificate: x509.Certificate) -> bytes:
    """Return a certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as unencrypted PKCS#8 PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def load_authority(certificate: bytes, key: bytes) -> Authority:
    """Read an authority; raises ``CertificateError`` if the two do not belong together."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"the stored authority cannot be read: {error}") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise CertificateError("the stored authority's key is not an elliptic curve key")
    if private.public_key() != loaded.public_key():
        raise CertificateError("the stored authority's key does not belong to its certificate")
    return Authority(loaded, private)


def load_bundle(data: bytes) -> list[x509.Certificate]:
    """Read PEM certificates; what is no certificate at all counts as none."""
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        return []


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _authority_identifier(authority: Authority) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )
