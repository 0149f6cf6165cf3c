"""Namespaces for one node, and programs inside them.

::

    test process                                  the node's namespaces
      │ 198.18.a.b/30                               │ 198.18.a.b+1/30 on eth0
      ├── veth ─────────────────────────────────────┤
      │                                             │ cni0: 10.88.0.0/24, the pods
      └── unshare ── init.py (number 1) ── kubelet, containerd, shims, containers

198.18.0.0/15 is set aside for tests of network devices (RFC 2544); a node takes four addresses of
its lower half, chosen by process number, which the directory, the control groups and the device
carry, too. Connected nodes take a /24 of the upper half for their pods.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from support.kubelets.realnode import cgroups, numa
from support.networks.netns import run

from loadtest.testbed.controlplane.programs import Program, ProgramFailed

_INIT: Final = Path(__file__).with_name("init.py")
_NUMBER: Final = itertools.count()
CONTROL_PLANE: Final = (
    "control-plane"  # the machine's name on the node; loadtest.testbed.controlplane.credentials
)
_LONGEST_DIRECTORY: Final = 40  # of the 107 bytes of a socket's path; sun_path, unix(7)
_FORK_S: Final = 30.0
_FORK_POLL_S: Final = 0.005
_BLOCKS: Final = 16  # of four addresses, for each process number; then over again
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Inside(Program):
    """A program in a node's namespaces; pid, signals and CPU time are its own, not nsenter's."""

    @property
    def pid(self) -> int:
        """Process id, as this side numbers it; ProgramFailed when it does not run."""
        if (child := self._child()) is None:
            raise ProgramFailed(f"{self.name} does not run")
        return child

    def _child(self) -> int | None:
        """Return what nsenter has forked; it does so a few milliseconds after it was started."""
        deadline = time.monotonic() + _FORK_S
        while self._process is not None and self.running and time.monotonic() < deadline:
            if found := _children(self._process.pid):
                return found[0]
            time.sleep(_FORK_POLL_S)
        return None

    def _signal(self, number: signal.Signals) -> None:
        if (child := self._child()) is None or self._process is None:
            return super()._signal(number)
        with suppress(ProcessLookupError):
            os.kill(child, number)
        if number in {signal.SIGKILL, signal.SIGCONT}:  # nsenter stops together with its child
            self._process.send_signal(signal.SIGCONT)
        return None


def _children(parent: int) -> list[int]:
    """Return the children of a process (proc(5): the second field after the name)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # gone meanwhile
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(stat.parent.name))
    return found


@dataclass(slots=True)
class Sandbox:
    """One node's namespaces, directory and control groups; an asynchronous context manager."""

    numa_nodes: int = 0  # in place of the machine's, if not 0
    connected: bool = False  # whether the machine can reach the node's pods
    name: str = field(default_factory=lambda: f"{cgroups.PREFIX}{os.getpid()}-{next(_NUMBER)}")
    directory: Path = field(init=False)
    outside: str = field(init=False, default="")  # the address of the machine for the node
    inside: str = field(init=False, default="")  # the address of the node
    pods: str = field(init=False, default="")  # their subnet, where they are connected
    _unshare: Program | None = field(init=False, default=None)
    _init: int = field(init=False, default=0)
    _programs: list[Inside] = field(init=False, default_factory=list)

    # -- life ------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        sweep()
        self.directory = _base(self.name) / self.name
        self._clear()  # what somebody left who had our process number before
        try:
            await self._begin()
        except BaseException:
            self.end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end()

    async def _begin(self) -> None:
        self.outside, self.inside = await _addresses()
        groups = cgroups.make(self.name)
        self.directory.mkdir(mode=0o700)
        for folder in ("private", "kubelet", "log"):
            (self.directory / folder).mkdir()
        spec = self.directory / "spec.json"
        spec.write_text(
            json.dumps(
                {
                    "groups": [str(group) for group in groups],
                    "hierarchies": [(h.folder, h.mount_options) for h in cgroups.hierarchies()],
                    "private": str(self.private),
                    "kubelet": str(self.directory / "kubelet"),
                    "hosts": str(self._hosts()),
                    "numa": str(self._numa()),
                }
            )
        )
        await self._unshared(spec)
        await self._connect()

    def _hosts(self) -> Path:
        path = self.directory / "hosts"
        path.write_text(f"127.0.0.1 localhost\n{self.outside} {CONTROL_PLANE}\n")
        return path

    def _numa(self) -> Path | str:
        if not self.numa_nodes:
            return ""
        numa.write(self.directory / "numa", self.numa_nodes)
        return self.directory / "numa"

    async def _unshared(self, spec: Path) -> None:
        """Start number 1 and wait for its word."""
        log = self.directory / "log"

        async def said() -> bool:
            return "ready" in (log / "init.log").read_text()

        command = (sys.executable, "-S", "-E", _INIT, "join", spec)
        self._unshare = Program("init", command, directory=log, ready=said)
        self._unshare.start()
        await self._unshare.wait_ready()
        (self._init,) = _children(self._unshare.pid)

    async def _connect(self) -> None:
        peer = ("peer", "name", "eth0", "netns", str(self._init))
        await run("ip", "link", "add", self._device, "type", "veth", *peer)
        await run("ip", "addr", "add", f"{self.outside}/30", "dev", self._device)
        await run("ip", "link", "set", self._device, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"{self.inside}/30", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("route", "add", "default", "via", self.outside),
        ):
            await run(*self.command("ip", *words))
        if self.connected:
            # The route goes with the device.
            self.pods = await _subnet(self._device, self.inside)

    def end(self) -> None:
        """Kill everything inside, and leave nothing behind."""
        if self._init:
            # It would go with its namespace, but the kernel takes its time for that.
            remove = ("ip", "link", "del", self._device)
            subprocess.run(remove, check=False, capture_output=True)
            with suppress(ProcessLookupError):
                os.kill(self._init, signal.SIGKILL)
        if self._unshare is not None:
            self._unshare.kill()
        for program in self._programs:
            program.kill()
        self._clear()

    def _clear(self) -> None:
        try:
            cgroups.remove(self.name)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def _device(self) -> str:
        """Our end of the pair, within the 15 characters of a device's name."""
        return f"mn{os.getpid()}x{self.name.rpartition('-')[2]}"

    # -- what runs inside ------------------------------------------------------------------------

    @property
    def private(self) -> Path:
        """A directory in memory that only the node sees, at this path."""
        return self.directory / "private"

    def command(self, *words: str | Path, path: Sequence[Path] = ()) -> tuple[str, ...]:
        """Return the command that runs another one inside, with an environment of its own."""
        enter = ("nsenter", "-t", str(self._init), "-m", "-p", "-n", "-i", "-C")
        places = ":".join((*map(str, path), _SYSTEM_PATH))
        environment = ("env", "-i", f"PATH={places}", "HOME=/root", "LANG=C.UTF-8")
        return (*enter, f"--wd={self.directory}", *environment, *map(str, words))

    def program(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        ready: Callable[[], Awaitable[bool]],
        path: Sequence[Path] = (),
    ) -> Inside:
        """Return a program that will run inside; `path` are directories before the usual ones."""
        words = self.command(*command, path=path)
        made = Inside(name, words, directory=self.directory / "log", ready=ready)
        self._programs.append(made)  # to be collected
        return made


# -- names and addresses -------------------------------------------------------------------------


def _base(name: str) -> Path:
    """Return where a directory of that name leaves room for sockets' names in its path."""
    for base in _places():
        if len(str(base / name)) <= _LONGEST_DIRECTORY:
            return base
    raise AssertionError(f"/tmp/{name} is longer than {_LONGEST_DIRECTORY} characters")


def _places() -> list[Path]:
    return [Path(tempfile.gettempdir()), Path("/tmp")]


async def _addresses() -> tuple[str, str]:
    """Return both ends of a /30 of 198.18.0.0/16 that no device of this machine is in."""
    for _ in range(_BLOCKS):
        block = (os.getpid() * _BLOCKS + next(_NUMBER) % _BLOCKS) % (1 << 14)
        base = (198 << 24) + (18 << 16) + block * 4
        if not await run("ip", "-o", "addr", "show", "to", f"{_dotted(base)}/30"):
            return _dotted(base + 1), _dotted(base + 2)
    raise AssertionError("devices of this machine are in every network that this process may take")


async def _subnet(device: str, via: str) -> str:
    """Route a /24 of 198.19.0.0/16 that no route of this machine leads to, and return it."""
    for _ in range(_BLOCKS):
        subnet = f"198.19.{(os.getpid() + next(_NUMBER)) % 256}.0/24"
        if not await run("ip", "route", "show", "to", "root", subnet):
            await run("ip", "route", "add", subnet, "via", via, "dev", device)
            return subnet
    raise AssertionError("routes of this machine lead to every subnet that pods may take")


def _dotted(address: int) -> str:
    return ".".join(str(octet) for octet in address.to_bytes(4, "big"))


def sweep() -> None:
    """Remove what killed runs left: control groups and directories."""
    cgroups.sweep()
    for base in _places():
        for left in base.glob(f"{cgroups.PREFIX}*-*"):
            if cgroups.abandoned(left.name):
                shutil.rmtree(left, ignore_errors=True)
