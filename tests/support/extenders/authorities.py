"""Certificates for tests of who may call: an authority, its servers and its clients, as files."""

import datetime as dt
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOUR = dt.timedelta(hours=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs what it is asked for; ``ca`` is its own certificate."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._builder(self._name, self._key.public_key(), HOUR).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.ca = directory / "ca.crt"
        self.ca.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))

    def issue(self, name: str | None, *organizations: str, valid_for: dt.timedelta = HOUR) -> Pair:
        """Return a certificate for both sides of a connection; without ``name`` it names no one."""
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in organizations]
        if name is not None:
            subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        key = ec.generate_private_key(ec.SECP256R1())
        addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        made = (
            self._builder(x509.Name(subject), key.public_key(), valid_for)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        )
        stem = "".join(c if c.isalnum() else "-" for c in (name or "nobody"))
        pair = Pair(self._directory / f"{stem}.crt", self._directory / f"{stem}.key")
        pair.certificate.write_bytes(_pem(made.sign(self._key, hashes.SHA256())))
        pair.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return pair

    def trust(self, shown: Pair | None = None) -> ssl.SSLContext:
        """Return a client's context: it trusts this authority and shows ``shown``."""
        context = ssl.create_default_context(cafile=str(self.ca))
        context.verify_flags &= (
            ~ssl.VERIFY_X509_STRICT
        )  # a plain authority, without key identifiers
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        return context

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, valid_for: dt.timedelta
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 2 * HOUR)
            .not_valid_after(now + valid_for)
        )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
