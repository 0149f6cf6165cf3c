"""How a caller without a token shows who it is through the API server's proxy.

The proxy removes ``Authorization`` and ends the TLS connection, so neither a token nor a client
certificate reaches the extender in its usual place. A token goes in the header ``TOKEN``. The
holder of a client certificate sends the certificate (RFC 9440) and a signature over the request
(HTTP message signatures, RFC 9421), made with the certificate's key::

    Client-Cert:     :MIIB…:
    Signature-Input: muster=("@method" "@request-target" "content-digest");created=…;tag="…"
    Signature:       muster=:MEUC…:
    Content-Digest:  sha-256=:X48E…:

Both sides build the same text (``base``) from the request; this module has no keys and no clock.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TOKEN: Final = "Muster-Authorization"  # noqa: S105  the name of a header
CERTIFICATE: Final = "Client-Cert"
INPUT: Final = "Signature-Input"
SIGNATURE: Final = "Signature"
DIGEST: Final = "Content-Digest"

TAG: Final = "muster.dev/extender"
FRESH_S: Final = 60
"""Seconds between the two clocks at most; for so long a signature can be sent again."""
LONGEST: Final = 6144
"""Characters of a header at most; a certificate with a key of 4096 bits takes about 2,400."""

_INPUT: Final = re.compile(
    r'muster=\(("@method" "@request-target" "content-digest")\);created=(\d{1,12});tag="([^"]*)"'
)
_COVERED: Final = '"@method" "@request-target" "content-digest"'


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What a signature covers."""

    method: str
    #: path and query, as the extender gets them
    target: str
    #: the value of the header ``DIGEST``
    digest: str
    #: epoch seconds
    created: int

    def base(self) -> bytes:
        """Return the text that is signed (RFC 9421, section 2.5)."""
        lines = (
            f'"@method": {self.method}',
            f'"@request-target": {self.target}',
            f'"content-digest": {self.digest}',
            f'"@signature-params": {_parameters(self.created)}',
        )
        return "\n".join(lines).encode()


@dataclass(frozen=True, slots=True)
class ShownSignature:
    """The headers of a signed request, decoded and not verified."""

    #: DER
    certificate: bytes
    signature: bytes
    #: the value of the header ``DIGEST``
    digest: str
    #: epoch seconds
    created: int


def digest(body: bytes) -> str:
    """Return the value of the header ``DIGEST`` for a body (RFC 9530)."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def headers(certificate: bytes, request: SignedRequest, signature: bytes) -> dict[str, str]:
    """Return the headers to send; ``certificate`` is DER."""
    return {
        CERTIFICATE: f":{base64.b64encode(certificate).decode()}:",
        INPUT: f"muster={_parameters(request.created)}",
        SIGNATURE: f"muster=:{base64.b64encode(signature).decode()}:",
        DIGEST: request.digest,
    }


def read(sent: Mapping[str, str]) -> ShownSignature | None:
    """Return what the headers hold, None without a certificate among them.

    Raises ``ValueError`` that names the header which cannot be read.
    """
    if CERTIFICATE not in sent:
        return None
    for name in (CERTIFICATE, INPUT, SIGNATURE, DIGEST):
        if name not in sent:
            raise ValueError(f"{name}: is missing beside {CERTIFICATE}")
        if len(sent[name]) > LONGEST:
            raise ValueError(f"{name}: has {len(sent[name])} characters; allowed are {LONGEST}")
    found = _INPUT.fullmatch(sent[INPUT])
    if found is None or found[3] != TAG:
        raise ValueError(f'{INPUT}: allowed is muster=({_COVERED});created=SECONDS;tag="{TAG}"')
    return ShownSignature(
        _bytes(CERTIFICATE, sent[CERTIFICATE]),
        _bytes(SIGNATURE, sent[SIGNATURE].removeprefix("muster=")),
        sent[DIGEST],
        int(found[2]),
    )


def _parameters(created: int) -> str:
    return f'({_COVERED});created={created};tag="{TAG}"'


def _bytes(name: str, text: str) -> bytes:
    """Return a byte sequence of RFC 8941: base64 between colons."""
    if len(text) < 2 or text[0] != ":" or text[-1] != ":":  # noqa: PLR2004  the two colons
        raise ValueError(f"{name}: is not base64 between two colons")
    try:
        return base64.b64decode(text[1:-1], validate=True)
    except binascii.Error as error:
        raise ValueError(f"{name}: is not base64 between two colons: {error}") from error
