"""An extender that records every call and answers as the test says."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from support.machine.patience import PATIENCE_S

Answer = Callable[[dict[str, Any]], Any]


@dataclass
class Call:
    verb: str
    body: dict[str, Any]
    raw: str
    headers: dict[str, str]

    @property
    def pod(self) -> str:
        if "PodName" in self.body:
            return f"{self.body['PodNamespace']}/{self.body['PodName']}"
        metadata = self.body["Pod"]["metadata"]
        return f"{metadata['namespace']}/{metadata['name']}"


@dataclass
class FakeExtender:
    """``answers`` maps (namespace/name of the pod, verb) to a function of the body."""

    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    url: str = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=2**28)
        app.router.add_post("/v1/{verb}", self._handle)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def on(self, pod: str, verb: str, answer: Answer) -> None:
        self.answers[pod, verb] = answer

    def seen(self, pod: str, verb: str = "") -> list[Call]:
        return [call for call in self.calls if call.pod == pod and verb in ("", call.verb)]

    async def wait_for(
        self, pod: str, verb: str, count: int = 1, seconds: float = PATIENCE_S
    ) -> list[Call]:
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(lambda: len(self.seen(pod, verb)) >= count)
        return self.seen(pod, verb)

    async def _handle(self, request: web.Request) -> web.Response:
        raw = await request.text()
        call = Call(request.match_info["verb"], json.loads(raw), raw, dict(request.headers))
        async with self.changed:
            self.calls.append(call)
            self.changed.notify_all()
        answer = self.answers.get((call.pod, call.verb), DEFAULTS[call.verb])(call.body)
        if isinstance(answer, web.Response):
            return answer
        return web.json_response(await answer if asyncio.iscoroutine(answer) else answer)


def _pass(body: dict[str, Any]) -> dict[str, Any]:
    return {"NodeNames": body["NodeNames"], "FailedNodes": {}, "Error": ""}


def _no_scores(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"Host": name, "Score": 0} for name in body["NodeNames"]]


def _keep(body: dict[str, Any]) -> dict[str, Any]:
    return {"NodeNameToMetaVictims": body["NodeNameToMetaVictims"]}


DEFAULTS: dict[str, Answer] = {
    "filter": _pass,
    "prioritize": _no_scores,
    "preempt": _keep,
    "bind": lambda _: {"Error": "the test did not say how to bind"},
}
