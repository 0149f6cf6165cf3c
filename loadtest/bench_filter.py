"""`muster bench filter`: latency of a plan hit, beside an echo route and a reference.

    one keep-alive connection to the extender:   filter, echo, filter, echo, …
    one keep-alive connection to the reference:  filter, filter, …  (a process of its own)

The extender runs as a program against the simulated API server; a gated pod is created,
planned and released there, and its body is then sent as kube-scheduler's Go code writes
it, with as many node names as asked for. The echo route exists only because the
extender's configuration asks for it (`echo: true`): it costs what HTTP costs. The
reference decodes everything (loadtest/decode_reference.py).

`p99_ratio_to_echo`: p99 of the round trip of filter over that of echo, same connection,
alternating. `server_p99_ms`: from the end of the request's head to the reply, the body's
arrival included, measured in the server and sent back in `Server-Timing`.
`speedup_over_decode`: median of that time in the reference over the median in the
extender; `round_trip_speedup` is the same of round trips, which the time that this
client itself needs makes more alike.
"""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from kube import names as wire_names
from loadtest.api import JSON, Api
from loadtest.decode_reference import host_name
from loadtest.nodes import create_nodes, node
from loadtest.pods import Gang, create_owner, members
from loadtest.programs import Program, free_port
from loadtest.simulated import SimulatedPlane

_PODS: Final = "/api/v1/namespaces/default/pods"
_FILTER: Final = "/v1/extender/filter"
_CALLS: Final = ((1_000, 5_000), (20_000, 2_000), (10**9, 400))  # names up to → round trips
_WARM_UP: Final = 50
_REFERENCE_CALLS: Final = 100
TOKEN: Final = "MUSTER_BENCH_TOKEN"  # noqa: S105 - the name of a variable
_POD_PADDING_BYTES: Final = 6_500  # brings the pod to the 8.2 KB that real training pods have
_PLANNED_WITHIN_S: Final = 60.0
_CHURN_PODS: Final = 512
_FLEET_AT_MOST: Final = 20_000
"""Nodes that really exist; further names are only sent, a plan hit never looks at them."""


def run(names: int, while_planning: bool) -> dict[str, object]:  # noqa: FBT001 - the command line's flag
    """Measure; returns the figures under the keys that the module explains."""
    if names < 1:
        raise ValueError(f"--names {names}: must be at least 1")
    return asyncio.run(_run(names, while_planning=while_planning))


async def _run(names: int, *, while_planning: bool) -> dict[str, object]:
    fleet = max(_CHURN_PODS // 8 * 4, min(names, _FLEET_AT_MOST))
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(SimulatedPlane())
        api = await stack.enter_async_context(plane.api("admin"))
        await create_nodes(api, (_host(index) for index in range(fleet)))
        extender = await _start(stack, plane, "extender", _extender(plane))
        reference = await _start(stack, plane, "reference", _reference(names))
        pod, node = await _released_pod(api)
        body = _body(pod, _offered(node, names))
        if while_planning:
            churn = [sys.executable, "-m", "loadtest.bench_filter", plane.url]
            await _start(
                stack, plane, "churn", _Part(churn, ""), {TOKEN: plane.credentials.tokens["admin"]}
            )
        figures = await asyncio.to_thread(_measure, extender, reference, body, node)
        planned = await asyncio.to_thread(_plans_made, extender)
    return {"names": names, "while_planning": while_planning, "plans_made": planned, **figures}


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
) -> str:
    async def answers() -> bool:
        return not part.url or await asyncio.to_thread(_is_ready, part.url)

    program = Program(name, part.command, directory=plane.directory, ready=answers, env=env)
    stack.push_async_callback(program.stop)
    program.start()
    await program.wait_ready()
    return part.url


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
        "apiVersion: muster.dev/v1alpha1\nkind: ExtenderConfiguration\n"
        f"listen: {{port: {port}}}\necho: true\n"
    )
    flags = ["--config", str(config), "--kubeconfig", str(plane.kubeconfig("admin"))]
    flags += ["--leader-elect=false"]
    return _Part([sys.executable, "-m", "extender", *flags], f"http://127.0.0.1:{port}")


def _reference(names: int) -> _Part:
    port = free_port()
    flags = ["--nodes", str(names), "--port", str(port)]
    command = [sys.executable, "-m", "loadtest.decode_reference", *flags]
    return _Part(command, f"http://127.0.0.1:{port}")


def _host(index: int) -> JSON:
    """Return one of the fleet: racks of 16 hosts, one block."""
    labels = {wire_names.ZONE: "zone-a", wire_names.BLOCK: "block-0"}
    return node(host_name(index), labels | {wire_names.RACK: f"rack-{index // 16:05d}"})


def _gated(gang: Gang, owner: JSON) -> list[JSON]:
    """Return the gang's pods as the webhook would leave them."""
    pods = list(members(gang, owner))
    for pod in pods:
        pod["spec"]["schedulingGates"] = [{"name": wire_names.PLAN_GATE}]
    return pods


async def _released_pod(api: Api) -> tuple[JSON, str]:
    """Create one gated pod and wait for its release; return it and its planned node."""
    gang = Gang("measured", 1, gpus=1)
    (pod,) = _gated(gang, await create_owner(api, gang))
    padding = {"name": "PADDING", "value": "x" * _POD_PADDING_BYTES}
    pod["spec"]["containers"][0]["env"] = [padding]
    await api.create(_PODS, pod)
    async with asyncio.timeout(_PLANNED_WITHIN_S):
        while True:
            pod = await api.get(f"{_PODS}/measured-0")
            plan = pod["metadata"].get("annotations", {}).get(wire_names.PLAN)
            if plan is not None and not pod["spec"].get("schedulingGates"):
                return pod, json.loads(plan)["node"]
            await asyncio.sleep(0.05)


def _offered(planned: str, count: int) -> list[str]:
    """Return ``count`` names with the planned one in the middle."""
    others = (name for name in map(host_name, itertools.count()) if name != planned)
    names = list(itertools.islice(others, count - 1))
    return [*names[: count // 2], planned, *names[count // 2 :]]


# metav1.ObjectMeta's fields in Go's order: what encoding/json writes first.
_META_ORDER: Final = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "labels", "annotations", "ownerReferences"),
)


def _body(pod: JSON, names: list[str]) -> bytes:
    """Return ExtenderArgs as kube-scheduler marshals them."""
    meta = pod["metadata"]
    ordered = {key: meta[key] for key in _META_ORDER if key in meta}
    args = {
        "Pod": {"metadata": ordered, "spec": pod["spec"], "status": pod.get("status", {})},
        "Nodes": None,
        "NodeNames": names,
    }
    return json.dumps(args, separators=(",", ":")).encode()


def _measure(extender: str, reference: str, body: bytes, node: str) -> dict[str, object]:
    count = len(json.loads(body)["NodeNames"])
    calls = next(calls for up_to, calls in _CALLS if count <= up_to)
    ours, theirs = _Connection(extender), _Connection(reference)
    planned = {"X-Planned-Node": node}
    filters, echoes, servers, decodes, decode_servers = [], [], [], [], []
    every = max(1, calls // _REFERENCE_CALLS)
    for index in range(-_WARM_UP, calls):
        took, server, reply = ours.post(_FILTER, body)
        if json.loads(reply)["NodeNames"] != [node]:
            raise RuntimeError(f"filter did not return the planned node {node}: {reply[:200]!r}")
        echo, _, _ = ours.post("/v1/echo", body)
        if index >= 0:
            filters.append(took)
            servers.append(server)
            echoes.append(echo)
        if index % every == 0:  # in between, so that all three see the same machine
            took, server, _ = theirs.post(_FILTER, body, planned)
            decodes.append(took)
            decode_servers.append(server)
    return {
        "calls": calls,
        "body_bytes": len(body),
        "p99_ratio_to_echo": _p(filters, 99) / _p(echoes, 99),
        "speedup_over_decode": _p(decode_servers, 50) / _p(servers, 50),
        "round_trip_speedup": _p(decodes, 50) / _p(filters, 50),
        "server_p99_ms": _p(servers, 99),
        "server_p50_ms": _p(servers, 50),
        "filter_p50_ms": _p(filters, 50),
        "filter_p99_ms": _p(filters, 99),
        "echo_p50_ms": _p(echoes, 50),
        "echo_p99_ms": _p(echoes, 99),
        "decode_p50_ms": _p(decodes, 50),
        "decode_p99_ms": _p(decodes, 99),
    }


def _p(values: list[float], percent: int) -> float:
    return float(np.percentile(np.asarray(values), percent))


class _Connection:
    """One blocking keep-alive connection: a client with as little noise of its own as there is."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[float, float, bytes]:
        """Return round trip and server time in milliseconds, and the reply."""
        began = time.perf_counter()
        self._connection.request(
            "POST", path, body, {"Content-Type": "application/json", **(headers or {})}
        )
        response = self._connection.getresponse()
        reply = response.read()
        took_ms = (time.perf_counter() - began) * 1000
        if response.status != 200:
            raise RuntimeError(f"POST {path}: {response.status}: {reply[:200]!r}")
        timing = response.headers.get("Server-Timing", "app;dur=nan")
        return took_ms, float(timing.partition("dur=")[2]), reply


def _plans_made(extender: str) -> int:
    """Read from the extender's metrics how many gangs it planned meanwhile."""
    connection = http.client.HTTPConnection(urlsplit(extender).netloc, timeout=30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    prefix = 'muster_plan_duration_seconds_count{outcome="plan"} '
    counts = [line.removeprefix(prefix) for line in text.splitlines() if line.startswith(prefix)]
    return int(float(counts[0])) if counts else 0


async def _churn(server: str) -> None:
    """Create a large gang, wait until it is released, delete it; for ever."""
    async with Api(server, token=os.environ[TOKEN]) as api:
        for number in itertools.count():
            gang = Gang(f"churn-{number}", _CHURN_PODS, gpus=1)
            owner = await create_owner(api, gang)
            async with asyncio.TaskGroup() as group:
                for pod in _gated(gang, owner):
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
