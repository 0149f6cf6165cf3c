"""How `Program` starts children in tests: programs of ours without their imports.

An extender imports for a second of CPU before it reads its flags, and the suite starts three
hundred::

    Program.start ──► Launcher ──┬── ours ──► fork server ──fork()──► python -m extender …
                                 └── any other ──execve()──► kube-apiserver …

A server is a process that has imported them (`support.machine.forkserver`). There are two, which
take turns, so that replicas differ in how they hash strings. Where the environment has something
that the interpreter or the loader reads when a program is executed, it is executed. Tests that
start a program without `Program` always execute it.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from support.machine import forkserver

from loadtest.testbed.controlplane.programs import Started, executed

_STAND_INS: Final = "loadtest.testbed.standins"
OURS: Final = ("extender", "webhook", f"{_STAND_INS}.apiserver", f"{_STAND_INS}.scheduler")
_LATER: Final = ("kubernetes.config", "importlib.readers", "numpy.ma")
"""What they import when they have read their flags: a fifth of a second."""
_SERVERS: Final = 2
_READ_AT_EXEC: Final = ("PYTHON", "LD_", "MALLOC_", "OPENBLAS_", "OMP_", "GRPC_", "OPENSSL_")


class Launcher:
    """Starts the modules by a fork server, and all other commands by an exec."""

    def __init__(self, modules: Sequence[str] = OURS, also: Sequence[str] = _LATER) -> None:
        """No server starts before there is something to fork. `also`: imported before a fork."""
        self._modules, self._also = tuple(modules), tuple(also)
        self._servers: dict[int, ForkServer] = {}
        self._turns = itertools.cycle(range(_SERVERS))

    def __call__(
        self, command: Sequence[str], environment: Mapping[str, str] | None, log: BinaryIO
    ) -> Started:
        """Start the command; its output goes to `log`."""
        wanted = os.environ if environment is None else environment
        if list(command[:2]) == [sys.executable, "-m"] and command[2] in self._modules:
            server = self._next()
            if server.fits(wanted):
                return server.fork(command[2:], wanted, log)
        return executed(command, environment, log)

    def close(self) -> None:
        """End the servers, and what runs of their children."""
        while self._servers:
            self._servers.popitem()[1].close()

    def _next(self) -> ForkServer:
        turn = next(self._turns)
        if turn in self._servers and not self._servers[turn].running:
            self._servers.pop(turn).close()
        if turn not in self._servers:
            self._servers[turn] = ForkServer(self._modules, self._also)
        return self._servers[turn]


class ForkServer:
    """One server; it ends when this process does, and its children with it."""

    def __init__(self, modules: Sequence[str], also: Sequence[str]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._read_at_exec = _read_at_exec(os.environ)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, forkserver.__file__, " ".join(modules), " ".join(also)],
                stdin=theirs,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a thread would not be forked
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        """Whether the server lives."""
        return self._process.poll() is None

    def fits(self, environment: Mapping[str, str]) -> bool:
        """Whether a child with this environment is the same, forked or executed."""
        return _read_at_exec(environment) == self._read_at_exec

    def fork(self, words: Sequence[str], environment: Mapping[str, str], log: BinaryIO) -> Forked:
        """Start ``python -m`` with these words: a module and its arguments."""
        request = {
            "words": list(words),
            "environment": dict(environment),
            "folder": str(Path.cwd()),
        }
        socket.send_fds(self._control, [json.dumps(request).encode()], [log.fileno()])
        pid, fds, _, _ = socket.recv_fds(self._control, forkserver.REQUEST_BYTES, 2)
        if not pid:
            raise RuntimeError("the fork server has ended; what it wrote is on stderr")
        return Forked(int(pid), *fds)

    def close(self) -> None:
        """End the server."""
        self._control.close()
        self._process.wait()


class Forked:
    """A child of a fork server."""

    def __init__(self, pid: int, pidfd: int, end: int) -> None:
        """`end`: where the server writes the exit code when it has collected the child."""
        self.pid, self._pidfd, self._end = pid, pidfd, end
        self._code: int | None = None
        self._ended = select.poll()
        self._ended.register(end, select.POLLIN)

    def poll(self) -> int | None:
        """Return None while it runs, then its exit code, as subprocess.Popen does."""
        if self._code is None and self._ended.poll(0):
            self.wait()
        return self._code

    def wait(self) -> int:
        """Return its exit code when it has ended and its process id is free."""
        if self._code is None:
            # Empty when the server ended first: its children are killed.
            self._code = int(os.read(self._end, 8) or -signal.SIGKILL)
            os.close(self._end)
            os.close(self._pidfd)
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send a signal; nothing happens when it has ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._pidfd, sig)


def _read_at_exec(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that have their effect when a program is executed."""
    return {k: v for k, v in environment.items() if k.startswith(_READ_AT_EXEC)}
