"""Certificates of clients in real handshakes, while their authority changes."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.extenders.authorities import Authority, Pair

from webhook.certificates.tls import HotContext, authorities, build
from webhook.errors import CertificateError

PATIENCE = 20


class Door:
    """A TLS server that tells each client the certificate it has seen."""

    def __init__(self, directory: Path) -> None:
        self.ours = Authority(directory / "ours", "ours")
        self.theirs = Authority(directory / "theirs", "theirs")
        self.next = Authority(directory / "next", "next")
        self.trusted = directory / "clients.crt"
        self.trusted.write_bytes(self.theirs.ca.read_bytes())
        serving = self.ours.issue("localhost")
        chain, key = serving.certificate.read_bytes(), serving.key.read_bytes()
        self.context = HotContext(chain, key, authorities(self.trusted))
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Door"]:
        server = await asyncio.start_server(self._tell, "127.0.0.1", 0, ssl=self.context.front)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await server.wait_closed()

    async def seen(self, shown: Pair | None) -> str:
        """What the server has seen; the handshake ends in an ``OSError`` where it is refused."""
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", self.port, ssl=self.ours.trust(shown), server_hostname="localhost"
            )
            try:
                told = await reader.read()
                if not told:
                    raise ConnectionResetError
                return told.decode()
            finally:
                writer.close()

    async def _tell(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate: Any = writer.get_extra_info("peercert")
        names = [value for part in (certificate or {}).get("subject", ()) for _, value in part]
        writer.write((names[0] if names else "nobody").encode())
        await writer.drain()
        writer.close()


async def test_a_client_may_show_nothing_or_what_the_authority_has_signed(tmp_path: Path) -> None:
    async with Door(tmp_path).open() as door:
        assert await door.seen(None) == "nobody"
        assert await door.seen(door.theirs.issue("kube-apiserver")) == "kube-apiserver"
        with pytest.raises(OSError, match=r".*"):
            await door.seen(door.next.issue("kube-apiserver"))


async def test_another_authority_counts_from_the_next_handshake_on(tmp_path: Path) -> None:
    async with Door(tmp_path).open() as door:
        old, new = door.theirs.issue("old"), door.next.issue("new")
        door.context.renew()  # nothing has changed
        assert await door.seen(old) == "old"
        door.trusted.write_bytes(door.next.ca.read_bytes())
        door.context.renew()
        assert await door.seen(new) == "new"
        with pytest.raises(OSError, match=r".*"):
            await door.seen(old)


async def test_an_authority_that_cannot_be_used_leaves_the_one_before(tmp_path: Path) -> None:
    async with Door(tmp_path).open() as door:
        door.trusted.write_text("no certificate")
        with pytest.raises(CertificateError, match=r"callers\.clientCaFile cannot be used"):
            door.context.renew()
        door.trusted.unlink()
        with pytest.raises(CertificateError, match=r"callers\.clientCaFile: .*clients\.crt"):
            door.context.renew()
        assert await door.seen(door.theirs.issue("kube-apiserver")) == "kube-apiserver"


async def test_a_new_certificate_of_ours_leaves_the_clients_authority(tmp_path: Path) -> None:
    async with Door(tmp_path).open() as door:
        fresh = door.ours.issue("fresh")
        door.context.swap(fresh.certificate.read_bytes(), fresh.key.read_bytes())
        assert await door.seen(door.theirs.issue("kube-apiserver")) == "kube-apiserver"


def test_without_an_authority_nobody_is_asked(tmp_path: Path) -> None:
    serving = Authority(tmp_path).issue("localhost")
    context = build(serving.certificate.read_bytes(), serving.key.read_bytes())
    assert context.verify_mode is ssl.CERT_NONE
