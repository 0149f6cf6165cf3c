"""Where the authority is kept, so that replicas and restarts share it.

A store gives what it holds together with a version, and takes a write only over that
version: two replicas that both see an empty store cannot both have their way.
"""

import asyncio
import base64
import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

import msgspec

from webhook.certificates.clusterapi import ClusterApi
from webhook.certificates.rotation import Authorities, decode, encode
from webhook.errors import CertificateError

EMPTY: Final = ""  # the version of a store that holds nothing
_AUTHORITY_FIELD: Final = "authority.json"
_PUBLIC_FIELD: Final = "ca.crt"


class Store(Protocol):
    """Holds one ``Authorities``."""

    async def read(self) -> tuple[Authorities | None, str]:
        """Return what is held, ``None`` if nothing, and its version."""

    async def write(self, authorities: Authorities, version: str, now: datetime) -> bool:
        """Replace the held version; return False, changing nothing, if it is another one."""


class DirectoryStore:
    """A directory of this machine: ``authority.json`` (mode 0600) and the public ``ca.crt``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def read(self) -> tuple[Authorities | None, str]:
        """Return what is held and its version, a digest of the file."""
        data = await asyncio.to_thread(self._content)
        return (decode(data), _digest(data)) if data is not None else (None, EMPTY)

    async def write(self, authorities: Authorities, version: str, now: datetime) -> bool:
        """Write both files, each at once, if the version still holds."""
        data, public = encode(authorities), authorities.bundle(now)
        return await asyncio.to_thread(self._replace, data, public, version)

    def _content(self) -> bytes | None:
        path = self._directory / _AUTHORITY_FIELD
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CertificateError(f"{path}: cannot be read: {error.strerror}") from error

    def _replace(self, data: bytes, public: bytes, version: str) -> bool:
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock():
                held = self._content()
                if (_digest(held) if held is not None else EMPTY) != version:
                    return False
                self._put(_AUTHORITY_FIELD, data, 0o600)
                self._put(_PUBLIC_FIELD, public, 0o644)
        except OSError as error:
            raise CertificateError(
                f"{self._directory}: cannot be written: {error.strerror}"
            ) from error
        return True

    @contextmanager
    def _lock(self) -> Iterator[None]:
        with (self._directory / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _put(self, name: str, data: bytes, mode: int) -> None:
        """Replace a file in one step: readers see the old one or the new one."""
        temporary = self._directory / f".{name}.new"
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(self._directory / name)


class _Meta(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Secret(msgspec.Struct, rename="camel", omit_defaults=True):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    data: dict[str, str] = msgspec.field(default_factory=dict)
    api_version: str = ""
    kind: str = ""
    type: str = ""


class SecretStore:
    """A Secret of the cluster. RBAC: get and patch on that name, create in its namespace."""

    def __init__(self, api: ClusterApi, namespace: str, name: str) -> None:
        self._api = api
        self._namespace = namespace
        self._name = name

    async def read(self) -> tuple[Authorities | None, str]:
        """Return what is held and the Secret's resourceVersion.

        An empty Secret made in advance (so that ``create`` needs no right) counts as none.
        """
        body = await self._api.read(f"{self._collection}/{self._name}")
        if body is None:
            return None, EMPTY
        secret = msgspec.json.decode(body, type=_Secret)
        held = secret.data.get(_AUTHORITY_FIELD, "")
        version = secret.metadata.resource_version
        return (decode(base64.b64decode(held)) if held else None), version

    async def write(self, authorities: Authorities, version: str, now: datetime) -> bool:
        """Create the Secret, or patch it where its resourceVersion is still ``version``."""
        data = {
            _AUTHORITY_FIELD: base64.b64encode(encode(authorities)).decode(),
            _PUBLIC_FIELD: base64.b64encode(authorities.bundle(now)).decode(),
        }
        if version == EMPTY:
            meta = _Meta(self._name, self._namespace)
            secret = _Secret(meta, data, api_version="v1", kind="Secret", type="Opaque")
            return await self._api.create(self._collection, msgspec.json.encode(secret))
        change = _Secret(_Meta(resource_version=version), data)
        path = f"{self._collection}/{self._name}"
        return await self._api.patch(path, msgspec.json.encode(change))

    @property
    def _collection(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/secrets"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
