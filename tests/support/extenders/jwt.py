"""ServiceAccount tokens taken apart and signed again: expired, or by somebody else."""

import base64
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

CURVE_BYTES = 32  # P-256: r and s of a JOSE signature (RFC 7518, 3.4)


def claims(token: str) -> dict[str, Any]:
    """Return what a token says."""
    payload = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * 3))
    return found


def private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Read the key that the API server signs with."""
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def signed_again(token: str, key: ec.EllipticCurvePrivateKey, **changes: object) -> str:
    """Return the token with other claims, signed by ``key``; its header stays."""
    header = token.split(".", maxsplit=1)[0]
    payload = _encoded(json.dumps(claims(token) | changes).encode())
    signature = key.sign(f"{header}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
    r, s = decode_dss_signature(signature)
    raw = r.to_bytes(CURVE_BYTES, "big") + s.to_bytes(CURVE_BYTES, "big")
    return f"{header}.{payload}.{_encoded(raw)}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
