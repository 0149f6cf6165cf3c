"""An authority, the extender's certificate and kube-scheduler's, as files and as Secrets.

The authority's key is not written anywhere: whoever needs new certificates makes all of them anew,
and nobody can find a key that opens `bind` for ever. cert-manager is the way for those who want
them renewed (manifests/components/cert-manager).
"""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import yaml
from cryptography.x509.oid import ExtendedKeyUsageOID

from webhook.authority import Leaf, Names, issue, new_authority, pem

_SECRET_MODE: Final = 0o600
_PUBLIC_MODE: Final = 0o644
_LONGEST_DAYS: Final = 3650
_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


def write(
    directory: Path, namespace: str, addresses: tuple[str, ...], days: int
) -> list[tuple[Path, str]]:
    """Write the files and return each with its purpose.

    Raises ``FileExistsError`` before anything is overwritten and ``ValueError`` for an address or
    a lifetime that cannot be.
    """
    if not 1 <= days <= _LONGEST_DAYS:
        raise ValueError(f"--days {days}: allowed is 1 to {_LONGEST_DAYS}")
    now, lifetime = datetime.now(UTC), timedelta(days=days)
    authority = new_authority(now, lifetime, name="muster extender authority")
    # Its own probes show the extender's certificate as a client.
    names = Names((f"muster-extender.{namespace}.svc", "localhost"), addresses)
    both = (_SERVER, _CLIENT)
    extender = issue(authority, names, now, lifetime, common_name="muster extender", usages=both)
    caller = Names(("kube-scheduler",))
    scheduler = issue(
        authority, caller, now, lifetime, common_name="kube-scheduler", usages=(_CLIENT,)
    )
    ca = pem(authority.certificate)
    secrets = [
        _secret("muster-extender-tls", namespace, extender, ca),
        _secret("muster-scheduler-client", namespace, scheduler, ca),
    ]
    manifest = yaml.safe_dump_all(secrets, sort_keys=False).encode()
    files = (
        ("secrets.yaml", manifest, _SECRET_MODE, "kubectl apply -f it; then delete it"),
        ("ca.crt", ca, _PUBLIC_MODE, "tlsConfig.caFile of a static-pod kube-scheduler"),
        ("scheduler.crt", scheduler.chain, _PUBLIC_MODE, "tlsConfig.certFile"),
        ("scheduler.key", scheduler.key, _SECRET_MODE, "tlsConfig.keyFile"),
    )
    return _put_all(directory, files)


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


def _secret(name: str, namespace: str, leaf: Leaf, ca: bytes) -> dict[str, object]:
    parts = {"tls.crt": leaf.chain, "tls.key": leaf.key, "ca.crt": ca}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(value).decode() for key, value in parts.items()},
    }
