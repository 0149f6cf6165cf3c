"""Port-forward: TLS from here to the extender, over the kubelet's WebSocket protocol.

The API server and the kubelet behind it are a stand-in here, which speaks v4.channel.k8s.io; the
TLS server at the pod's port is real.
"""

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import WSMsgType, web
from support.extenders.installation import certificates

from muster.cli.kubeconfig import context
from muster.cli.output import ExitCode, Failure
from muster.cli.reach.portforward import PortForward
from muster.cli.reach.tunnel import PROTOCOL

OWN = "/api/v1/namespaces/muster-system"
POD = {
    "metadata": {"name": "muster-extender-0"},
    "spec": {"containers": [{"ports": [{"name": "https", "containerPort": 1}]}]},
}


@dataclass
class Site:
    """A stand-in of the API server, and an extender that answers what it was shown."""

    url: str = ""
    port: int = 0
    authority: str = ""
    pods: list[Any] = field(default_factory=lambda: [POD])
    refuses: int = 0
    trouble: str = ""
    shown: list[str] = field(default_factory=list)

    async def listed(self, _: web.Request) -> web.Response:
        return web.json_response({"items": self.pods})

    async def published(self, _: web.Request) -> web.Response:
        return web.json_response({"data": {"ca.crt": self.authority}})

    async def forward(self, request: web.Request) -> web.StreamResponse:
        if self.refuses:
            status = {"kind": "Status", "message": "no"}
            return web.json_response(status, status=self.refuses)
        ws = web.WebSocketResponse(protocols=(PROTOCOL,))
        await ws.prepare(request)
        port = int(request.query["ports"]).to_bytes(2, "little")
        await ws.send_bytes(b"\x00" + port)
        await ws.send_bytes(b"\x01" + port)
        if self.trouble:
            await ws.send_bytes(b"\x01" + self.trouble.encode())
            await ws.close()
            return ws
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)

        async def back() -> None:
            while piece := await reader.read(1000):
                await ws.send_bytes(b"\x00" + piece)
            await ws.close()

        copying = asyncio.create_task(back())
        async for message in ws:
            assert message.type is WSMsgType.BINARY
            assert message.data[0] == 0
            writer.write(message.data[1:])
        writer.close()
        copying.cancel()
        return ws

    async def extender(self, request: web.Request) -> web.Response:
        self.shown.append(request.headers.get("Authorization", ""))
        return web.json_response({"path": request.path_qs, "rows": "x" * 300_000})


@asynccontextmanager
async def running(directory: Path) -> AsyncIterator[Site]:
    site = Site()
    certificates(directory)
    site.authority = (directory / "ca.crt").read_text()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    server, extender = web.Application(), web.Application()
    server.add_routes(
        [
            web.get(f"{OWN}/pods", site.listed),
            web.get(f"{OWN}/configmaps/muster-extender-ca", site.published),
            web.get(f"{OWN}/pods/muster-extender-0/portforward", site.forward),
        ]
    )
    extender.add_routes([web.get("/{path:.*}", site.extender)])
    runners = [web.AppRunner(server), web.AppRunner(extender)]
    ports = []
    for runner, context_ in zip(runners, (None, tls), strict=True):
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context_).start()
        ports.append(runner.addresses[0][1])
    site.url, site.port = f"http://127.0.0.1:{ports[0]}", ports[1]
    try:
        yield site
    finally:
        for runner in runners:
            await runner.cleanup()


def way(site: Site, directory: Path, authority: Path | None = None) -> PortForward:
    path = directory / "kubeconfig"
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": site.url}}],
        "users": [{"name": "anna", "user": {"token": "anna-token"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "anna"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return PortForward(context.find(path, None, {}), "muster-system", authority)


async def asked(it: PortForward, path: str = "/v1/gangs?namespace=a") -> bytes:
    return await asyncio.to_thread(it.ask, path, 20.0)


async def test_an_answer_of_any_size_comes_over_tls_with_the_token_in_its_own_header(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as site:
        answer = json.loads(await asked(way(site, tmp_path)))
        assert answer["path"] == "/v1/gangs?namespace=a"
        assert len(answer["rows"]) == 300_000
        assert site.shown == ["Bearer anna-token"]
        assert await asked(way(site, tmp_path, tmp_path / "ca.crt"))
    left = [each.name for each in threading.enumerate() if "_run" in each.name]
    assert left == []


async def test_an_extender_of_another_authority_gets_no_token(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    certificates(tmp_path / "other")
    async with running(tmp_path) as site:
        site.authority = (tmp_path / "other" / "ca.crt").read_text()
        with pytest.raises(Failure, match="is not trusted") as failed:
            await asked(way(site, tmp_path))
        assert failed.value.code is ExitCode.UNREACHED
        assert site.shown == []


async def test_what_the_node_says_of_the_port_is_passed_on(tmp_path: Path) -> None:
    async with running(tmp_path) as site:
        site.trouble = "failed to connect to localhost:1 inside namespace"
        with pytest.raises(Failure, match="the node says: failed to connect to localhost:1"):
            await asked(way(site, tmp_path))


async def test_without_a_leader_without_a_right_and_without_an_authority_it_says_so(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as site:
        site.refuses = 403
        with pytest.raises(Failure, match="--role=muster-user") as failed:
            await asked(way(site, tmp_path))
        assert failed.value.code is ExitCode.DENIED
        site.pods = []
        with pytest.raises(Failure, match="no extender leads"):
            await asked(way(site, tmp_path))
        site.pods, site.authority = [POD], "nothing"
        with pytest.raises(Failure, match="name the extender's authority with --ca FILE"):
            await asked(way(site, tmp_path))


async def test_a_server_that_is_gone_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(Failure, match="nothing listens there"):
        await asked(way(Site(url=url), tmp_path))
