"""Whether certificates in files and Secrets are still valid."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cryptography import x509

from muster.cli.verification.finding import CheckFinding, broken, warning

_SOON: Final = timedelta(days=14)
_RENEW: Final = "renew it (muster certificates, or see cert-manager's Certificate)"


def validity(area: str, what: str, pem: bytes, now: datetime) -> CheckFinding | None:
    """Check a PEM file of certificates; None where all are valid for a while."""
    found = load_bundle(pem)
    if not found:
        return broken(area, f"{what}: holds no certificate", _RENEW)
    for certificate in found:
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if now < begin:
            return broken(area, f"{what}: is valid from {_day(begin)} only", "is a clock wrong?")
        if end <= now:
            return broken(area, f"{what}: expired on {_day(end)}", _RENEW)
        if end < now + _SOON:
            return warning(area, f"{what}: expires on {_day(end)}", _RENEW)
    return None


def load_bundle(data: bytes) -> list[x509.Certificate]:
    """Return the PEM certificates in ``data``, [] for invalid data."""
    try:
        return x509.load_pem_x509_certificates(data)
    except ValueError:
        return []


def names_of(certificate: x509.Certificate) -> set[str]:
    """Return the DNS names and addresses that a certificate is valid for."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return set()
    addresses = {str(address) for address in found.get_values_for_type(x509.IPAddress)}
    return {*found.get_values_for_type(x509.DNSName), *addresses}


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
