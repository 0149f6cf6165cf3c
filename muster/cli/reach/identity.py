"""What a kubeconfig's user shows the extender: the token, or a signature by the certificate."""

from __future__ import annotations

import time

from muster.apiwire import callersignature
from muster.apiwire.callersignature import SignedRequest
from muster.cli.kubeconfig.credential import Credential
from muster.cli.output import ExitCode, Failure
from muster.cli.reach.exchange import SentRequest


def shown(credential: Credential, asked: SentRequest, *, proxied: bool) -> dict[str, str]:
    """Return the headers for a request; ``asked.path`` is as the extender gets it.

    ``proxied``: through the API server's proxy, which removes ``Authorization``. Raises ``Failure``
    for a user without either.
    """
    if credential.certificate:  # as the API server: it asks for the certificate first
        return _signed(credential, asked)
    if credential.token:
        name = callersignature.TOKEN if proxied else "Authorization"
        return {name: f"Bearer {credential.token}"}
    text = f"user {credential.user or 'of no name'}: has neither a token nor a client certificate"
    raise Failure(text, code=ExitCode.DENIED)


def _signed(credential: Credential, asked: SentRequest) -> dict[str, str]:
    from cryptography import x509  # noqa: PLC0415  a tenth of a second
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415  lazy
    from cryptography.hazmat.primitives.asymmetric import (  # noqa: PLC0415  lazy
        ec,
        ed25519,
        padding,
        rsa,
    )

    where = f"user {credential.user}: client certificate"
    try:
        certificate = x509.load_pem_x509_certificates(credential.certificate)[0]
        key = serialization.load_pem_private_key(credential.key, None)
    except (ValueError, TypeError) as error:
        raise Failure(f"{where}: cannot be read: {error}", code=ExitCode.USAGE) from error
    digest = callersignature.digest(asked.body or b"")
    request = SignedRequest(asked.method, asked.path, digest, int(time.time()))
    if isinstance(key, ec.EllipticCurvePrivateKey):
        signature = key.sign(request.base(), ec.ECDSA(hashes.SHA256()))
    elif isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(request.base(), padding.PKCS1v15(), hashes.SHA256())
    elif isinstance(key, ed25519.Ed25519PrivateKey):
        signature = key.sign(request.base())
    else:
        text = f"{where}: its key is of a kind that cannot sign; allowed are ECDSA, Ed25519, RSA"
        raise Failure(text, code=ExitCode.USAGE)
    der = certificate.public_bytes(serialization.Encoding.DER)
    return callersignature.headers(der, request, signature)
