"""Names and validity of a client certificate that a TLS handshake has verified.

Both servers read it: the extender for its callers, the webhook for the API server. The form is
that of ``SSLSocket.getpeercert()``::

    {"subject": ((("commonName", "kube-scheduler"),), …),
     "subjectAltName": (("DNS", "a.example"), …), "notAfter": "Jan  1 00:00:00 2030 GMT", …}
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """Names and validity of a client certificate."""

    #: In the order of the certificate; most have one.
    common_names: tuple[str, ...]
    #: The organizations (O) in its subject.
    organizations: frozenset[str]
    #: Its DNS subject alternative names.
    dns_names: tuple[str, ...]
    #: End of the validity, in seconds since the epoch.
    until: float

    @property
    def names(self) -> frozenset[str]:
        """Return common names and DNS names."""
        return frozenset((*self.common_names, *self.dns_names))


def read(certificate: Mapping[str, Any]) -> ClientCertificate:
    """Return the names and the validity of a certificate in the form of ``getpeercert()``."""
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    return ClientCertificate(
        tuple(value for key, value in subject if key == "commonName"),
        frozenset(value for key, value in subject if key == "organizationName"),
        tuple(value for key, value in certificate.get("subjectAltName", ()) if key == "DNS"),
        ssl.cert_time_to_seconds(certificate["notAfter"]),
    )
