"""`muster bench cold-start`: what the extender spends from the first byte of its lists to ready.

::

    loadtest.benches.coldstart.server ◄── lists, over loopback ── python -m extender
              │ how far the lists are                          │ CPU from proc(5)
              └──────────────────► this process ◄──────────────┘

The extender is the program itself. Its CPU, user and system, is read when the server was first
asked, when pods were first asked for, and when it is ready; starting the interpreter comes
before. Whether it is ready is asked once it has asked for the last pods. Then its watch of pods
expires (410), and what it spends until it has read them again is added. Some pages of the same
list are then decoded here: as the extender decodes them, and from JSON to dictionaries, which is
the yardstick. Each plan names a spare, as those of the default settings do.
Times are CPU time, so that a busy machine changes them less; the yardstick, in the same run, tells
by how much it did.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson
import yaml

from loadtest.benches.coldstart.objects import Fleet, PackedTemplate, make, page
from loadtest.testbed.controlplane import credentials
from loadtest.testbed.controlplane.credentials import Credentials
from loadtest.testbed.controlplane.process import Children
from loadtest.testbed.controlplane.procfs import resident_mib
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.standins import packing
from muster.kube.client import LISTED_ITEMS
from muster.kube.firstlist.decoders import COLUMNS, LISTED_PODS
from muster.kube.resources import NODES, Resource
from muster.kube.watching.frames import Codec, Page, PageDecoder

SAMPLES: Final = 8  # pages that are decoded here, spread over the list
LONGEST_S: Final = 1800.0
_POLL_S: Final = 0.02
_READY_POLL_S: Final = 0.02  # each question costs the extender some 0.3 ms
_AGAIN_POLL_S: Final = 0.5  # of metrics: some milliseconds


def run(nodes: int, pods: int, *, tls: bool = False) -> dict[str, float]:
    """Start an extender on a cluster of this size; seconds, µs a pod, MiB, by name.

    ``tls``: its lists come encrypted, as in every cluster; what that costs depends on OpenSSL.
    """
    whole = asyncio.run(_cold_start(nodes, pods, tls=tls))
    cpu_us = whole["pods_cpu_s"] / pods * 1e6
    stages = _stages(nodes, pods)
    ratio = stages["dicts_us_per_pod"] / cpu_us
    listed = {"cpu_us_per_pod": round(cpu_us, 2), "times_faster_than_dicts": round(ratio, 2)}
    return {"nodes": nodes, "pods": pods, **whole, **listed, **stages}


@dataclass(slots=True)
class _Clock:
    """What the extender had spent when something happened first."""

    extender: Program
    #: The answers that have all pods.
    answers: int
    #: Set when the last of these answers was asked for.
    asked: asyncio.Event
    asked_s: float = 0.0
    pods_s: float = 0.0

    def look(self, lists: dict[str, int]) -> None:
        spent = self.extender.cpu_seconds()
        if not lists:
            self.asked_s = spent
        if not lists.get("pods"):
            self.pods_s = spent
        if lists.get("pods", 0) >= self.answers:
            self.asked.set()


async def _cold_start(nodes: int, pods: int, *, tls: bool) -> dict[str, float]:
    arguments = ["--nodes", str(nodes), "--pods", str(pods)]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        made = credentials.create(directory)
        if tls:
            arguments += ["--chain", str(made.certificate), "--key", str(made.key)]
        async with Children(directory) as children, _session(made) as http:
            _, server = await children.start_module(
                "server", "loadtest.benches.coldstart.server", *arguments
            )
            port, asked = free_port(), asyncio.Event()
            kubeconfig = made.write_kubeconfig("muster-extender", server)
            extender = _extender(directory, kubeconfig, port, http, asked)
            clock = _Clock(extender, -(-pods // LISTED_ITEMS), asked)
            try:
                return await _timed(clock, http, server, f"http://127.0.0.1:{port}")
            finally:
                await extender.stop()


def _session(made: Credentials) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cafile=str(made.ca))
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))


async def _timed(
    clock: _Clock, http: aiohttp.ClientSession, server: str, url: str
) -> dict[str, float]:
    extender = clock.extender
    extender.start()
    ready = asyncio.create_task(extender.wait_ready(LONGEST_S))
    while not ready.done():
        async with http.get(f"{server}/progress") as response:
            clock.look(await response.json())
        await asyncio.sleep(_POLL_S)
    await ready
    spent = extender.cpu_seconds()
    resident = resident_mib(extender.pid)
    async with http.post(f"{server}/expire"):
        await _listed_again(http, url)
    return {
        "cpu_s": round(spent - clock.asked_s, 2),
        "nodes_cpu_s": round(clock.pods_s - clock.asked_s, 2),
        "pods_cpu_s": round(spent - clock.pods_s, 2),
        "rss_mib": round(resident, 1),
        "again_cpu_s": round(extender.cpu_seconds() - spent, 2),
    }


async def _listed_again(http: aiohttp.ClientSession, extender: str) -> None:
    """Wait until all pods of a second list have been applied."""
    twice = 'muster_watch_relists_total{resource="pods"} 2.0'
    async with asyncio.timeout(LONGEST_S):
        while True:
            async with http.get(f"{extender}/metrics") as response:
                if twice in await response.text():
                    return
            await asyncio.sleep(_AGAIN_POLL_S)


def _extender(
    directory: Path, kubeconfig: Path, port: int, http: aiohttp.ClientSession, asked: asyncio.Event
) -> Program:
    config = directory / "extender.yaml"
    settings = {
        "kind": "ExtenderConfiguration",
        "listen": {"port": port},
        "drainSeconds": 0,
        "leaderElection": {"leaderElect": False},
    }
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")

    async def ready() -> bool:
        await asyncio.sleep(_READY_POLL_S)
        if not asked.is_set():
            return False
        try:
            async with http.get(f"http://127.0.0.1:{port}/readyz") as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    command: list[str | Path] = [sys.executable, "-m", "extender"]
    command += ["--config", config, "--kubeconfig", kubeconfig]
    return Program("extender", command, directory=directory, ready=ready)


def _stages(nodes: int, pods: int) -> dict[str, float]:
    """Decode some pages of each list; µs an object, and bytes."""
    written = Fleet(nodes, pods), page
    packed = Fleet(nodes, pods, PackedTemplate), packing.page
    found: dict[str, float] = {}
    kinds: dict[str, Resource[Any]] = {"nodes": NODES, "pods": LISTED_PODS}
    for plural, resource in kinds.items():
        one, kind = plural.removesuffix("s"), f"{plural.removesuffix('s').title()}List"
        ways: dict[str, Callable[[bytes], object]] = {
            f"decode_us_per_{one}": partial(_all_pages, COLUMNS[resource]),
            f"decode_json_us_per_{one}": Codec(resource).page,
            f"dicts_us_per_{one}": orjson.loads,
        }
        for name, decode in ways.items():
            fleet, write = packed if name == f"decode_us_per_{one}" else written
            size, found[name] = _decoded(fleet, plural, partial(write, kind, {}), decode)
            found[f"{one}_json_bytes" if write is page else f"{one}_bytes"] = size
    return found


def _all_pages(decoder: PageDecoder[Any], body: bytes) -> list[Page[Any]]:
    return list(decoder.pages(body))


def _decoded(
    fleet: Fleet,
    plural: str,
    write: Callable[[list[bytes]], bytes],
    decode: Callable[[bytes], object],
) -> tuple[int, float]:
    """Return bytes and µs an object."""
    count, one = make(fleet, plural)
    step = max(LISTED_ITEMS, count // SAMPLES)
    looked = size = 0
    spent = 0.0
    for begin in range(0, count, step):
        items = [one(number) for number in range(begin, min(count, begin + LISTED_ITEMS))]
        body = write(items)
        looked, size = looked + len(items), size + sum(map(len, items))
        gc.disable()  # kind to the yardstick: it has more to collect
        began = time.process_time()
        decode(body)
        spent += time.process_time() - began
        gc.enable()
    return size // looked, round(spent / looked * 1e6, 2)
