"""Start, watch and stop the programs of a control plane: one `Program` is one child process.

     stopped ──start()──► running ──wait_ready()──► ready
        ▲                    │  └── dies early: ProgramFailed with the end of its log
        └── stop(): SIGTERM, after the grace SIGKILL;  kill(): SIGKILL at once

A child never outlives us: the kernel sends it SIGKILL when the thread that started it is gone
(PR_SET_PDEATHSIG, prctl(2)); elsewhere than on Linux an orderly exit has to do.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, ClassVar, Final, Protocol

GRACE_S: Final = 5.0  # etcd and the API server end within a second when they have no watches
READY_TIMEOUT_S: Final = 120.0  # a cold API server takes 3 s alone and 20 s on a crowded machine
# Some times what an object takes: kube-scheduler was 60 s over 130,000 nodes on two busy cores.
_LISTED_S: Final = 0.002
_POLL_S: Final = 0.05
_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_LOG_TAIL_LINES: Final = 25
_RANGE: Final = 16_000  # ports, those just below the ephemeral ones
_BLOCK: Final = 100  # ports; a test or a bench has a dozen programs at a time


class ProgramFailed(Exception):
    """A program ended or never became ready; the message carries the end of its log."""


def free_port() -> int:
    """Return a free loopback port that no other process running this code is given.

    Each process claims a block of ports and walks round in it. The block lies below the range that
    the kernel uses for outgoing connections: port 0 is not good enough for a program that is killed
    and comes back on its own port, for as long as it is away the kernel may lend that port to a
    client, even to one that is just dialling it.
    """
    for port in itertools.islice(_own_ports(), _BLOCK):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if _binds(probe, port):
                return port
    raise ProgramFailed(f"no free loopback port among the {_BLOCK} of this process")


@functools.cache
def _own_ports() -> Iterator[int]:
    """Claim a block by holding its first port until the process ends; yield the rest for ever."""
    low = _first_ephemeral_port()
    blocks = list(range(low - _RANGE, low, _BLOCK))
    random.SystemRandom().shuffle(blocks)  # not `random`: tests seed it alike in every process
    for first in blocks:
        claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if _binds(claim, first):
            claim.detach()
            return itertools.cycle(range(first + 1, first + _BLOCK))
        claim.close()
    raise ProgramFailed(f"every block of loopback ports from {low - _RANGE} to {low} is taken")


def _binds(server: socket.socket, port: int) -> bool:
    try:
        server.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def _first_ephemeral_port() -> int:
    try:
        text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    except OSError:
        return 32_768  # the Linux default; other kernels start higher still
    return max(1024 + _RANGE, int(text.split()[0]))


def die_with_parent() -> Callable[[], None] | None:
    """Return what a child does first so that it ends with us (a preexec_fn)."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # loaded here: next to nothing runs after the fork
    parent = os.getpid()

    def arm() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call
            os._exit(1)

    return arm


def ready_within(objects: int) -> float:
    """Return how many seconds a program may take until it has listed so many objects."""
    return READY_TIMEOUT_S + objects * _LISTED_S


class Started(Protocol):
    """A child process that has been started."""

    @property
    def pid(self) -> int:
        """Process id."""

    def poll(self) -> int | None:
        """Return None while it runs, then its exit code."""

    def wait(self) -> int:
        """Return its exit code when it has ended."""

    def send_signal(self, sig: int) -> None:
        """Send a signal; nothing happens when it has ended."""


Launch = Callable[[Sequence[str], Mapping[str, str] | None, BinaryIO], Started]
"""Starts a command with an environment (None: this process's); its output goes to the file."""


def executed(
    command: Sequence[str], environment: Mapping[str, str] | None, log: BinaryIO
) -> Started:
    """Start the command by fork(2) and execve(2)."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        # A group of its own: Ctrl-C goes to us alone and we stop the parts in order.
        start_new_session=True,
        preexec_fn=die_with_parent(),  # noqa: PLW1509  one prctl(2), nothing that locks
    )


class Program:
    """One child process with its log file, restartable with the same command line."""

    launch: ClassVar[Launch] = staticmethod(executed)
    """How children start; the test suite has a way of its own that is faster."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        directory: Path,
        ready: Callable[[], Awaitable[bool]],
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`ready` is polled until true; `directory` receives NAME.log, which restarts append to."""
        self.name = name
        self.command = [str(word) for word in command]
        self.log = directory / f"{name}.log"
        self._ready = ready
        self._env = None if env is None else {**os.environ, **env}
        self._process: Started | None = None

    @property
    def running(self) -> bool:
        """Whether the child lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def crashed(self) -> bool:
        """Whether the child ended without being stopped or killed from here."""
        return self._process is not None and not self.running

    @property
    def pid(self) -> int:
        """Process id of the running child; ProgramFailed when it does not run."""
        if self._process is None or not self.running:
            raise ProgramFailed(f"{self.name} does not run")
        return self._process.pid

    def start(self) -> None:
        """Start the child; a running one is left alone."""
        if self.running:
            return
        with self.log.open("ab") as log:
            self._process = Program.launch(self.command, self._env, log)

    async def wait_ready(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Poll until ready. ProgramFailed when the child ends first or takes too long."""
        deadline = time.monotonic() + timeout_s
        while not await self._ready():
            if not self.running:
                raise ProgramFailed(f"{self.name} ended before it was ready\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ProgramFailed(
                    f"{self.name} not ready after {timeout_s:.0f} s\n{self.log_tail()}"
                )
            await asyncio.sleep(_POLL_S)

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End the child: SIGTERM, and SIGKILL when it has not gone within the grace."""
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while self.running and time.monotonic() < deadline:  # noqa: ASYNC110  a child sets no Event
            await asyncio.sleep(_POLL_S)
        self.kill()

    def kill(self) -> None:
        """End the child with SIGKILL and collect it."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        """Freeze the child (SIGSTOP): a slow or partitioned part, its connections stay open."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen child go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def cpu_seconds(self) -> float:
        """User plus system time that the child has used so far, in seconds (Linux)."""
        # proc(5): fields 14 and 15, counted after the command in brackets, which may hold blanks.
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def log_tail(self) -> str:
        """Return the last lines of the log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
