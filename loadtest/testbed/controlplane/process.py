"""Being a well-behaved child process, and having some.

A program of ours prints one line when it listens and ends on SIGTERM; ``Children`` starts such
programs, waits for their line, and makes sure that none outlives it. (Programs that are not
ours, and those that are killed and started again, are
``loadtest.testbed.controlplane.programs.Program``.)
"""

import asyncio
import json
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from loadtest.testbed.controlplane.programs import die_with_parent

START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 5.0


def announce(runner: web.BaseRunner, scheme: str = "http") -> None:
    """Print where the runner's first site listens, as one JSON line."""
    host, port = runner.addresses[0][:2]
    print(json.dumps({"listening": f"{scheme}://{host}:{port}"}), flush=True)


async def until_terminated() -> None:
    """Wait for SIGTERM or SIGINT."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    await done.wait()


class ChildFailed(Exception):
    """A program did not start or ended early; the message carries the end of its log."""


class Child:
    """One running program; its output goes to ``log``."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name, self.process, self.log = name, process, log

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    def failure(self, what: str) -> ChildFailed:
        """Return an error that shows how the program's log ends."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return ChildFailed(f"{self.name} {what}\n--- {self.log} ends with ---\n{text[-2000:]}")

    async def stop(self) -> None:
        """Ask the program to end, then insist."""
        if self.process.returncode is not None:
            return
        self.process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            await self.process.wait()


class Children:
    """Programs that say where they listen; stopped in reverse order whatever happens.

    ``folder`` takes one log file each. Use as an asynchronous context manager.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in reversed(self._children):
            await child.stop()

    def check(self) -> None:
        """Raise ``ChildFailed`` when one of the programs has ended."""
        for child in self._children:
            if child.process.returncode is not None:
                raise child.failure(f"ended with exit code {child.process.returncode}")

    async def start(
        self, name: str, command: Sequence[str], *, environment: Mapping[str, str] | None = None
    ) -> tuple[Child, str]:
        """Start a program and wait for its line; returns it and the URL it listens on."""
        path = self._folder / f"{name}.log"
        with path.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        child = Child(name, process, path)
        self._children.append(child)
        try:
            async with asyncio.timeout(START_SECONDS):
                return child, await _listening(process)
        except (TimeoutError, EOFError) as error:
            raise child.failure("did not start") from error

    async def start_module(
        self, name: str, module: str, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> tuple[Child, str]:
        """Start ``python -m module`` with this interpreter."""
        command = [sys.executable, "-m", module, *arguments]
        return await self.start(name, command, environment=environment)


async def _listening(process: asyncio.subprocess.Process) -> str:
    """Read lines until the one that tells the URL; raises ``EOFError`` without one."""
    if process.stdout is None:
        raise EOFError
    async for line in process.stdout:
        try:
            found = json.loads(line).get("listening")
        except (ValueError, AttributeError):
            continue
        if isinstance(found, str):
            return found
    raise EOFError
