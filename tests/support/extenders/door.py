"""An extender behind TLS that asks its callers who they are, and an API server it can ask."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from support.apiservers.apifaults import api_server
from support.apiservers.reviewing import Account, ReviewingServer
from support.extenders.authorities import Authority, Pair
from support.extenders.extenders import until

from extender.app import KEEP_ALIVE_S, make_app
from extender.config.callers import CallersSettings
from extender.config.settings import ExtenderConfig, TlsFiles
from extender.process import serving_certificate
from extender.wiring.extender import Extender
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.http.transport import Retry, Transport


def accounts() -> dict[str, Account]:
    return {
        "t-prometheus": Account("prometheus", may_get=["/metrics"]),
        "t-admin": Account("root", ["admins", "staff"]),
        "t-scheduler": Account("scheduler"),
        "t-nobody": Account("nobody"),
        "t-plugin": Account("plugin", node="n1"),
        "t-plugin-of-no-node": Account("plugin"),
        "t-other-of-n1": Account("other", node="n1"),
        "t-made-for-us": Account("prometheus", [], ["muster.dev/extender"], ["/metrics"]),
    }


@dataclass
class Door:
    """A running extender, its callers' certificates, and the API server it asks."""

    url: str
    ours: Authority
    server: ReviewingServer
    extender: Extender

    async def ask(
        self, path: str, shown: Pair | None = None, *, token: str = "", method: str = "GET"
    ) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        """Return status, JSON and headers of one answer, over a connection of its own."""
        async with self.session(shown, token) as session:
            return await self.over(session, path, method)

    def session(self, shown: Pair | None = None, token: str = "") -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self.ours.trust(shown))
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return aiohttp.ClientSession(self.url, connector=connector, headers=headers)

    async def over(
        self, session: aiohttp.ClientSession, path: str, method: str = "GET"
    ) -> tuple[int, dict[str, Any], Mapping[str, str]]:
        async with session.request(method, path, json={} if method == "POST" else None) as reply:
            text = await reply.text()
            body = json.loads(text) if text.startswith("{") else {}
            return reply.status, body, reply.headers

    async def bind(self, shown: Pair | None = None, token: str = "") -> int:
        """400: it was let in, and the body is not what the wire says."""
        status, *_ = await self.ask("/v1/extender/bind", shown, token=token, method="POST")
        return status

    def refused(self) -> dict[tuple[str, str], float]:
        """Return the count of refusals by route and reason."""
        return self._count(self.extender.parts.metrics.refused_callers, "route", "reason")

    def reviews(self) -> dict[tuple[str, str], float]:
        return self._count(self.extender.parts.metrics.caller_reviews, "kind", "outcome")

    def _count(self, counter: Any, *labels: str) -> dict[tuple[str, str], float]:
        return {
            (sample.labels[labels[0]], sample.labels[labels[1]]): sample.value
            for family in counter.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }


@asynccontextmanager
async def door(
    directory: Path, callers: CallersSettings, *, asks: bool = True
) -> AsyncIterator[Door]:
    """Serve as `run_extender` does, with ``callers``; ``asks``: for certificates."""
    ours = Authority(directory / "ours")
    own = ours.issue("muster extender")
    ca = str(ours.ca) if asks else None
    tls = TlsFiles(str(own.certificate), str(own.key), ca)
    config = ExtenderConfig(tls=tls, callers=callers)
    certificate = serving_certificate(config)
    assert certificate is not None
    server = ReviewingServer(accounts())
    async with AsyncExitStack() as stack:
        _, url = await stack.enter_async_context(api_server(server))
        identity = auth.fixed(url)
        impatient = Transport(identity, retry=Retry(attempts=1))
        client = await stack.enter_async_context(KubeClient(identity, transport=impatient))
        extender = Extender(config, client)
        certificate.listen(extender.parts.gate.handshake_failed)
        runner = web.AppRunner(make_app(extender.parts), keepalive_timeout=KEEP_ALIVE_S)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=certificate.front)
        await site.start()
        await until(extender.sync.synced.is_set)
        port = runner.addresses[0][1]
        yield Door(f"https://localhost:{port}", ours, server, extender)
