"""``python -m extender`` behind TLS, and clients that begin requests and never end them."""

import asyncio
import contextlib
import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from support.apiservers.apifaults import api_server
from support.apiservers.kubeconfigs import kubeconfig
from support.extenders.authorities import Authority, Pair

WITHIN_S = 60
MIB = 1024
ATTACKERS = 300
MOST_OPEN = 32
HEAD_S = 1.0
HALF = b"POST /v1/extender/filter HTTP/1.1\r\nHost: localhost\r\nX-Pad: "
CONFIG = """apiVersion: muster.dev/v1alpha1
kind: ExtenderConfiguration
leaderElection: {{leaderElect: false}}
listen: {{connections: {most}, headSeconds: {head}}}
tls: {{certFile: {cert}, keyFile: {key}, clientCaFile: {ca}}}
callers: {{schedule: {{certificates: [scheduler]}}, tokens: {{}}}}
"""


@dataclass
class Program:
    """A running extender."""

    url: str
    pid: int
    ours: Authority

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def resident(self) -> int:
        """KiB."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    async def half(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection without a certificate, on which half a head was sent."""
        streams = await asyncio.open_connection("localhost", self.port, ssl=self.ours.trust())
        streams[1].write(HALF)
        await streams[1].drain()
        return streams

    def scheduler(self, shown: Pair) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            self.url, connector=aiohttp.TCPConnector(ssl=self.ours.trust(shown), limit=1)
        )


@asynccontextmanager
async def program(folder: Path) -> AsyncIterator[Program]:
    ours = Authority(folder / "ours")
    own = ours.issue("muster extender")
    config = folder / "extender.yaml"
    files = {"cert": own.certificate, "key": own.key, "ca": ours.ca}
    config.write_text(CONFIG.format(most=MOST_OPEN, head=HEAD_S, **files))
    async with api_server() as (_, url):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "extender", "--config", str(config),
            "--kubeconfig", str(kubeconfig(folder, url)),
            stdout=asyncio.subprocess.PIPE, stderr=None,
        )  # fmt: skip
        assert process.stdout is not None
        try:
            listening = json.loads(await process.stdout.readline())["listening"]
            port = listening.rpartition(":")[2]
            yield Program(f"https://localhost:{port}", process.pid, ours)
        finally:
            process.terminate()
            await process.wait()


async def test_halves_of_heads_neither_fill_the_memory_nor_keep_kube_scheduler_out(
    tmp_path: Path,
) -> None:
    async with asyncio.timeout(WITHIN_S), program(tmp_path) as extender:
        shown = extender.ours.issue("scheduler")
        async with extender.scheduler(shown) as session:
            assert await bind(session) == 400  # let in, and the body is not what the wire says
            before = extender.resident()
            halves = [await extender.half() for _ in range(ATTACKERS)]
            assert await bind(session) == 400
            assert extender.resident() - before < 40 * MIB  # 84 MiB with buffers for all of them
            for reader, writer in halves:
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    assert await reader.read() == b""
                writer.close()
            assert await bind(session) == 400


async def test_strangers_beyond_the_limit_push_one_another_out_and_not_kube_scheduler(
    tmp_path: Path,
) -> None:
    """They say nothing at all, so no head is ever late."""
    async with asyncio.timeout(WITHIN_S), program(tmp_path) as extender:
        shown = extender.ours.issue("scheduler")
        async with extender.scheduler(shown) as session:
            assert await bind(session) == 400
            trust = extender.ours.trust()
            silent = [
                await asyncio.open_connection("localhost", extender.port, ssl=trust)
                for _ in range(MOST_OPEN + 8)
            ]
            for reader, _ in silent[:9]:  # one of the limit is kube-scheduler's
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    assert await reader.read() == b""
            assert await bind(session) == 400
            for _, writer in silent:
                writer.close()


async def bind(session: aiohttp.ClientSession) -> int:
    async with session.post("/v1/extender/bind", json={}) as reply:
        return reply.status
