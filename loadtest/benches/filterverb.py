"""`muster bench filter`: latency of a plan hit, beside an echo and a reference.

    one keep-alive connection to the extender:   filter ─┐ in turns
    one keep-alive connection to the echo:       echo ◄──┘ (a process of its own)
    one keep-alive connection to the reference:  filter, filter, …  (a process of its own)

The extender runs as a program against the simulated API server; a gated pod is created,
planned and released there, and its body is then sent as kube-scheduler's Go code writes
it, with as many node names as asked for. The echo (loadtest/benches/echo.py) is the same
server library without any work: it costs what HTTP costs. The reference decodes everything
(loadtest/benches/decode_reference.py).

`p99_ratio_to_echo`: p99 of the round trip of filter over that of echo, alternating.
`server_p99_ms`: from the end of the request's head to the reply, the body's arrival included,
as the extender measures it: the sum of its histogram of requests is read after each call, in
calls of their own that no round trip is taken from.
`speedup_over_decode`: median of that time in the reference over the median in the
extender; `round_trip_speedup` is the same of round trips, which the time that this
client itself needs makes more alike. `cpu_us_per_filter`, `cpu_us_per_echo`: CPU time of
the extender or the echo for a call, from turns of many calls of one kind.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import statistics
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from loadtest.benches.decode_reference import host_name
from loadtest.benches.filtercalls import (
    FILTER,
    Connection,
    gated,
    percentile,
    released_pod,
    request_body,
)
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.client.nodes import create_nodes, node
from loadtest.testbed.client.pods import Gang, create_owner
from loadtest.testbed.controlplane.process import Children
from loadtest.testbed.controlplane.procfs import cpu_seconds
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.standins.simulated import SimulatedPlane
from muster.kube import names as wire_names

_PODS: Final = "/api/v1/namespaces/default/pods"
_ECHO: Final = "/echo"
_PRIORITIZE: Final = "/v1/extender/prioritize"
_SERVER_SECONDS: Final = 'muster_extender_request_duration_seconds_sum{outcome="ok",verb="filter"} '
_PLANS: Final = 'muster_plan_duration_seconds_count{outcome="plan"} '
_CALLS: Final = ((1_000, 5_000), (20_000, 2_000), (10**9, 400))  # names up to → round trips
_WARM_UP: Final = 50
_WARM_AGAIN: Final = 3
_REFERENCE_CALLS: Final = 100
_SERVER_CALLS: Final = 1_000  # at most, each with a look at the metrics
_COST_TURNS: Final = 15  # of either kind: CPU time is read between them
TOKEN: Final = "MUSTER_BENCH_TOKEN"  # noqa: S105 - the name of a variable
_CHURN_PODS: Final = 512
_FLEET_AT_MOST: Final = 20_000
"""Nodes that really exist; further names are only sent, a plan hit never looks at them."""


def run(
    names: int,
    while_planning: bool,  # noqa: FBT001 - the command line's flag
    calls: int | None = None,
) -> dict[str, object]:
    """Measure; returns the figures under the keys that the module explains.

    ``calls``: round trips of either kind, fewer for longer bodies where it is not given.
    """
    if names < 1:
        raise ValueError(f"--names {names}: must be at least 1")
    calls = calls or next(count for up_to, count in _CALLS if names <= up_to)
    return asyncio.run(_run(names, calls, while_planning=while_planning))


async def _run(names: int, calls: int, *, while_planning: bool) -> dict[str, object]:
    fleet = max(_CHURN_PODS // 8 * 4, min(names, _FLEET_AT_MOST))
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(SimulatedPlane())
        api = await stack.enter_async_context(plane.api("admin"))
        await create_nodes(api, (_host(index) for index in range(fleet)))
        ours, reference = _extender(plane), _reference(names)
        extender = await _start(stack, plane, "extender", ours)
        await _start(stack, plane, "reference", reference)
        pod, node = await released_pod(api)
        body = request_body(pod, _offered(node, names))
        if while_planning:
            churn = [sys.executable, "-m", "loadtest.benches.filterverb", plane.url]
            await _start(
                stack, plane, "churn", _Part(churn, ""), {TOKEN: plane.credentials.tokens["admin"]}
            )
        children = await stack.enter_async_context(Children(plane.directory))
        echo, echo_url = await children.start_module("echo", "loadtest.benches.echo")
        measure = _Measuring(ours.url, echo_url, body, node, calls)
        figures = await asyncio.to_thread(measure.times, reference.url)
        costs = await asyncio.to_thread(measure.costs, {FILTER: extender.pid, _ECHO: echo.pid})
        planned = int(await asyncio.to_thread(_metric, ours.url, _PLANS))
    asked = {"names": names, "while_planning": while_planning}
    return {**asked, "plans_made": planned, **figures, **costs}


@dataclass(frozen=True, slots=True)
class _Part:
    """A command line, and the URL at which it answers ("": it does not serve)."""

    command: list[str]
    url: str


async def _start(
    stack: AsyncExitStack,
    plane: SimulatedPlane,
    name: str,
    part: _Part,
    env: Mapping[str, str] | None = None,
) -> Program:
    async def answers() -> bool:
        return not part.url or await asyncio.to_thread(_is_ready, part.url)

    program = Program(name, part.command, directory=plane.directory, ready=answers, env=env)
    stack.push_async_callback(program.stop)
    program.start()
    await program.wait_ready()
    return program


def _is_ready(url: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _extender(plane: SimulatedPlane) -> _Part:
    """Write the configuration; return the extender's command line."""
    port = free_port()
    config = plane.directory / "extender.yaml"
    config.write_text(
        f"apiVersion: muster.dev/v1alpha1\nkind: ExtenderConfiguration\nlisten: {{port: {port}}}\n"
    )
    flags = ["--config", str(config), "--kubeconfig", str(plane.kubeconfig("admin"))]
    flags += ["--leader-elect=false"]
    return _Part([sys.executable, "-m", "extender", *flags], f"http://127.0.0.1:{port}")


def _reference(names: int) -> _Part:
    port = free_port()
    flags = ["--nodes", str(names), "--port", str(port)]
    command = [sys.executable, "-m", "loadtest.benches.decode_reference", *flags]
    return _Part(command, f"http://127.0.0.1:{port}")


def _host(index: int) -> JSON:
    """Return one of the fleet: racks of 16 hosts, one block."""
    labels = {wire_names.ZONE: "zone-a", wire_names.BLOCK: "block-0"}
    return node(host_name(index), labels | {wire_names.RACK: f"rack-{index // 16:05d}"})


def _offered(planned: str, count: int) -> list[str]:
    """Return ``count`` names with the planned one in the middle."""
    others = (name for name in map(host_name, itertools.count()) if name != planned)
    names = list(itertools.islice(others, count - 1))
    return [*names[: count // 2], planned, *names[count // 2 :]]


@dataclass(frozen=True, slots=True)
class _Measuring:
    """One request to the extender, over and over, and the same bytes to the echo."""

    extender: str
    echo: str
    body: bytes
    node: str
    calls: int

    def times(self, reference: str) -> dict[str, object]:
        """Time round trips in turns."""
        ours, floor, theirs = map(Connection, (self.extender, self.echo, reference))
        planned = {"X-Planned-Node": self.node}
        filters, echoes, decodes, decode_servers = [], [], [], []
        every = max(1, self.calls // _REFERENCE_CALLS)
        for index in range(-_WARM_UP, self.calls):
            took = self._filter(ours)
            echo, _, _ = floor.post(_ECHO, self.body)
            if index >= 0:
                filters.append(took)
                echoes.append(echo)
            if index % every == 0:  # in between, so that all three see the same machine
                took, server, _ = theirs.post(FILTER, self.body, planned)
                decodes.append(took)
                decode_servers.append(server)
        servers = self._server_times(ours)
        return {
            "calls": self.calls,
            "body_bytes": len(self.body),
            "p99_ratio_to_echo": percentile(filters, 99) / percentile(echoes, 99),
            "speedup_over_decode": percentile(decode_servers, 50) / percentile(servers, 50),
            "round_trip_speedup": percentile(decodes, 50) / percentile(filters, 50),
            "server_p99_ms": percentile(servers, 99),
            "server_p50_ms": percentile(servers, 50),
            "filter_p50_ms": percentile(filters, 50),
            "filter_p99_ms": percentile(filters, 99),
            "echo_p50_ms": percentile(echoes, 50),
            "echo_p99_ms": percentile(echoes, 99),
            "decode_p50_ms": percentile(decodes, 50),
            "decode_p99_ms": percentile(decodes, 99),
        }

    def costs(self, pids: Mapping[str, int]) -> dict[str, object]:
        """Return the CPU time of a call of either kind, many calls at a time; ``pids``: by path."""
        connections = {FILTER: Connection(self.extender), _ECHO: Connection(self.echo)}
        spent: dict[str, list[float]] = {FILTER: [], _ECHO: []}
        calls = -(-self.calls // _COST_TURNS)
        for path in itertools.chain.from_iterable(spent for _ in range(_COST_TURNS)):
            before = cpu_seconds(pids[path])
            for _ in range(calls):
                connections[path].post(path, self.body)
            spent[path].append(1e6 * (cpu_seconds(pids[path]) - before) / calls)
        return {
            "cpu_us_per_filter": statistics.median(spent[FILTER]),
            "cpu_us_per_echo": statistics.median(spent[_ECHO]),
        }

    def _server_times(self, connection: Connection) -> list[float]:
        """Return what calls took in the extender, in milliseconds: nothing else calls it."""
        found, before = [], _metric(self.extender, _SERVER_SECONDS)
        for _ in range(min(self.calls, _SERVER_CALLS)):
            for _ in range(_WARM_AGAIN):  # the look at the metrics has emptied the caches
                connection.post(_PRIORITIZE, self.body)
            self._filter(connection)
            after = _metric(self.extender, _SERVER_SECONDS)
            found.append(1000 * (after - before))
            before = after
        return found

    def _filter(self, connection: Connection) -> float:
        """Return the round trip of one call in milliseconds; its answer is right."""
        took, _, reply = connection.post(FILTER, self.body)
        if json.loads(reply)["NodeNames"] != [self.node]:
            raise RuntimeError(f"filter did not return node {self.node}: {reply[:200]!r}")
        return took


def _metric(extender: str, prefix: str) -> float:
    """Return a figure of the extender's metrics, 0 where it has none of the name."""
    connection = http.client.HTTPConnection(urlsplit(extender).netloc, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    found = [line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix)]
    return float(found[0]) if found else 0.0


async def _churn(server: str) -> None:
    """Create a large gang, wait until it is released, delete it; for ever."""
    async with Api(server, token=os.environ[TOKEN]) as api:
        for number in itertools.count():
            gang = Gang(f"churn-{number}", _CHURN_PODS, gpus=1)
            owner = await create_owner(api, gang)
            async with asyncio.TaskGroup() as group:
                for pod in gated(gang, owner):
                    group.create_task(api.create(_PODS, pod))
            await _until_released(api, f"{gang.name}-{gang.size - 1}")
            async with asyncio.TaskGroup() as group:
                for rank in range(gang.size):
                    group.create_task(api.delete(f"{_PODS}/{gang.name}-{rank}"))


async def _until_released(api: Api, name: str) -> None:
    while True:
        pod = await api.get(f"{_PODS}/{name}")
        if not pod["spec"].get("schedulingGates"):
            return
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(_churn(sys.argv[1]))
