"""TLS of the extender: what is served, what replaces it, who is refused.

::

    old/ (authority, certificate, key)    served first
    new/ (another authority)              put in its place while connections are open
"""

import asyncio
import json
import shutil
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from support.apiservers.apifaults import api_server

from extender.config.settings import TlsFiles
from loadtest.testbed.controlplane import credentials
from loadtest.testbed.controlplane.credentials import Credentials
from muster.observability.configfile import ConfigError
from muster.observability.servingcert import ServingCertificate

WITHIN_S = 60


@pytest.fixture
def old(tmp_path: Path) -> Credentials:
    (tmp_path / "old").mkdir()
    return credentials.create(tmp_path / "old")


@pytest.fixture
def new(tmp_path: Path) -> Credentials:
    (tmp_path / "new").mkdir()
    return credentials.create(tmp_path / "new")


def files(made: Credentials, *, clients: bool = False) -> TlsFiles:
    ca = str(made.ca) if clients else None
    return TlsFiles(str(made.certificate), str(made.key), ca, check_seconds=0.05)


@asynccontextmanager
async def listening(certificate: ServingCertificate) -> AsyncIterator[int]:
    """Answer every line with itself; gives the port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(line)
        except OSError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=certificate.front)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


class Client:
    """One connection that trusts ``authority``."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def works(self) -> bool:
        self._writer.write(b"hello\n")
        return await self._reader.readline() == b"hello\n"

    async def is_refused(self) -> bool:
        """With TLS 1.3 a client learns of its refusal with the first read."""
        try:
            return not await self.works()
        except (ssl.SSLError, ConnectionError):
            return True

    def close(self) -> None:
        self._writer.transport.abort()


async def connect(port: int, authority: Credentials, *, known: bool = False) -> Client:
    context = ssl.create_default_context(cafile=str(authority.ca))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # the loadtest's authority is a plain one
    if known:
        context.load_cert_chain(authority.certificate, authority.key)
    return Client(*await asyncio.open_connection("127.0.0.1", port, ssl=context))


async def trusts(port: int, authority: Credentials) -> bool:
    try:
        client = await connect(port, authority)
    except ssl.SSLCertVerificationError:
        return False
    client.close()
    return True


def put(made: Credentials, over: Credentials) -> None:
    shutil.copy(made.certificate, over.certificate)
    shutil.copy(made.key, over.key)


async def test_a_replaced_certificate_is_served_and_open_connections_stay(
    old: Credentials, new: Credentials
) -> None:
    certificate = ServingCertificate(files(old))
    assert not certificate.refresh()
    async with listening(certificate) as port:
        before = await connect(port, old)
        put(new, over=old)
        assert certificate.refresh()
        assert await trusts(port, new)
        assert not await trusts(port, old)
        assert await before.works()
        before.close()


async def test_a_pair_read_in_the_middle_of_its_renewal_is_not_served(
    old: Credentials, new: Credentials
) -> None:
    certificate = ServingCertificate(files(old))
    async with listening(certificate) as port:
        shutil.copy(new.certificate, old.certificate)  # the key follows in a moment
        with pytest.raises(ConfigError, match=r"serving\.crt"):
            certificate.refresh()
        assert await trusts(port, old)
        shutil.copy(new.key, old.key)
        assert certificate.refresh()
        assert await trusts(port, new)


async def test_files_that_are_gone_leave_the_certificate_served(old: Credentials) -> None:
    certificate = ServingCertificate(files(old))
    old.key.unlink()
    with pytest.raises(ConfigError, match=r"serving\.key"):
        certificate.refresh()
    async with listening(certificate) as port:
        assert await trusts(port, old)


async def test_with_a_client_authority_strangers_are_refused_after_a_renewal_too(
    old: Credentials, new: Credentials
) -> None:
    certificate = ServingCertificate(files(old, clients=True))
    async with listening(certificate) as port:
        for ours in (old, new):
            friend = await connect(port, ours, known=True)
            assert await friend.works()
            friend.close()
            stranger = await connect(port, ours)
            assert await stranger.is_refused()
            stranger.close()
            put(new, over=old)
            shutil.copy(new.ca, old.ca)
            certificate.refresh()


async def test_the_program_serves_tls_refuses_plain_http_and_sees_a_new_certificate(
    tmp_path: Path, old: Credentials, new: Credentials
) -> None:
    config = tmp_path / "extender.yaml"
    tls = {"certFile": str(old.certificate), "keyFile": str(old.key), "checkSeconds": 0.05}
    config.write_text(json.dumps({"kind": "ExtenderConfiguration", "tls": tls}))
    async with api_server() as (_, url):
        kubeconfig = old.write_kubeconfig("muster-extender", url)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "extender"),
            *("--config", str(config), "--kubeconfig", str(kubeconfig), "--leader-elect", "false"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(WITHIN_S):
                address = json.loads(await process.stdout.readline())["listening"]
                assert address.startswith("https://127.0.0.1:")
                port = int(address.rpartition(":")[2])
                async with aiohttp.ClientSession() as session:
                    with pytest.raises(aiohttp.ClientError):
                        await session.get(f"http://127.0.0.1:{port}/livez")
                assert await trusts(port, old)
                put(new, over=old)
                while not await trusts(port, new):  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
        finally:
            process.terminate()
            await process.wait()
