"""A simulated control plane with the interface of the real one (controlplane.controlplane).

    async with SimulatedPlane() as plane:            # the API server stand-in, ready in a second
        await plane.start_scheduler(config)          # the same KubeSchedulerConfiguration file

Whoever takes a `Plane` does not know which of the two it got; tests/contract holds them together.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol

import aiohttp

from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane import credentials
from loadtest.testbed.controlplane.controlplane import API_SERVER, SCHEDULER
from loadtest.testbed.controlplane.parts import Parts
from loadtest.testbed.controlplane.programs import READY_TIMEOUT_S, Program, free_port
from loadtest.testbed.standins.apiserver import population

# Twenty times what creating an object took on an idle machine, for one that is not.
_CREATION_S: Final = 0.002


class Plane(Protocol):
    """What the simulated and the real control plane have in common."""

    url: str
    credentials: credentials.Credentials

    @property
    def directory(self) -> Path:
        """Where logs and credentials lie."""

    def kubeconfig(self, user: str = "admin", *, server: str | None = None) -> Path:
        """Write and return a kubeconfig."""

    def api(self, user: str = "observer", *, limit: int = 64) -> Api:
        """Return a plain client."""

    async def start_scheduler(self, config: Path, *, ready_s: float = READY_TIMEOUT_S) -> None:
        """Start the scheduler with a KubeSchedulerConfiguration file."""

    async def stop(self, name: str) -> None:
        """End a part in an orderly way."""

    def kill(self, name: str) -> None:
        """SIGKILL a part."""

    def program(self, name: str) -> Program:
        """Return a part."""

    def cpu_seconds(self) -> Mapping[str, float]:
        """CPU seconds used by each running part."""


class SimulatedPlane(Parts):
    """The stand-ins as child processes; an async context manager. State dies with the server."""

    def __init__(
        self,
        *,
        bookmark_s: float = 60.0,
        seed: int = 0,
        population: Iterable[tuple[str, JSON]] = (),
    ) -> None:
        """`bookmark_s`: seconds between the bookmarks of a watch. Nothing starts yet.

        `population`: (path of the collection, object) of what is there from the beginning.
        """
        super().__init__("muster-simulated-")
        self._population = population
        self._bookmark_s = bookmark_s
        self._seed = seed

    async def _take_down(self) -> None:
        for name in (SCHEDULER, API_SERVER):
            await self.stop(name)

    async def _bring_up(self) -> None:
        self.credentials = await asyncio.to_thread(credentials.create, self.directory)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        flags = [
            f"--port={port}",
            f"--token-auth-file={self.credentials.token_file}",
            f"--webhook-token-file={self.credentials.webhook_token}",
            f"--bookmark-seconds={self._bookmark_s}",
            f"--seed={self._seed}",
        ]
        file = self.directory / "population.jsonl"
        count = await asyncio.to_thread(population.write, file, self._population)
        patience_s = READY_TIMEOUT_S + count * _CREATION_S
        await self._start(
            API_SERVER,
            "loadtest.testbed.standins.apiserver",
            [*flags, f"--population={file}"] if count else flags,
            f"{self.url}/readyz",
            patience_s,
        )
        file.unlink()

    def api(self, user: str = "observer", *, limit: int = 64) -> Api:
        """Return a plain client; enter it with `async with`."""
        return Api(self.url, token=self.credentials.tokens[user], limit=limit)

    async def start_scheduler(self, config: Path, *, ready_s: float = READY_TIMEOUT_S) -> None:
        """Start the scheduler stand-in; an older one is stopped."""
        await self.stop(SCHEDULER)
        port = free_port()
        flags = [f"--config={config}", f"--port={port}", f"--seed={self._seed}"]
        ready = f"http://127.0.0.1:{port}/readyz"
        await self._start(
            SCHEDULER, "loadtest.testbed.standins.scheduler", flags, ready, patience_s=ready_s
        )

    async def _start(
        self,
        name: str,
        module: str,
        flags: list[str],
        ready_url: str,
        patience_s: float = READY_TIMEOUT_S,
    ) -> None:
        program = Program(
            name,
            [sys.executable, "-m", module, *flags],
            directory=self.directory,
            ready=lambda: _answers(ready_url),
        )
        self._programs[name] = program
        program.start()
        await program.wait_ready(patience_s)


async def _answers(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            return reply.status == 200
    except aiohttp.ClientError:
        return False
