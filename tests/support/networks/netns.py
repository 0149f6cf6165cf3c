"""Network namespaces for tests: nodes on one underlay, and pods on their bridges.

::

        test (root namespace)          every name carries the process' number, so that
          │ veth, .254                 workers do not meet
        ┌─┴──── switch: bridge ─────┐
        │ veth, .1                  │ veth, .2
     ┌──┴── node 1 ──┐           ┌──┴── node 2 ──┐
     │ mvx1000 mvb1000│           │ mvb1000 mvx1000│
     └──────────┬────┘           └────┬──────────┘
          veth  │                     │  veth
             ┌──┴─ pod ─┐          ┌──┴─ pod ─┐      as the CNI bridge plugin makes them
             └──────────┘          └──────────┘

Everything goes with its namespace: no device, address or route stays behind.
"""

import asyncio
import itertools
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

_NUMBER: Final = itertools.count()
_PROBE: Final = """
import socket, sys
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2
role, address, port, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
if role == "echo":
    s.bind((address, port))
    print("up", flush=True)
    while True:
        data, peer = s.recvfrom(65535)
        s.sendto(data, peer)
s.settimeout(0.5)
for _ in range(int(sys.argv[5])):
    try:
        s.sendto(b"x" * size, (address, port))
        assert len(s.recv(65535)) == size
        print("answered")
        break
    except TimeoutError:
        continue
    except OSError as error:
        print(error.strerror)
        break
else:
    print("silent")
"""


async def run(*command: str, check: bool = True) -> str:
    """Run a command and return its output."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    out, _ = await process.communicate()
    assert process.returncode == 0 or not check, f"{' '.join(command)}: {out.decode()}"
    return out.decode()


async def why_not_v6() -> str:
    """Return why nodes cannot have IPv6 addresses here, "" where they can."""
    name = f"mt{os.getpid()}-try6"
    try:
        await run("ip", "netns", "add", name)
        await run("ip", "-n", name, "addr", "add", "fd4d::ff/64", "dev", "lo")
    except (AssertionError, OSError) as error:
        return f"this kernel has no IPv6: {error}"
    finally:
        await run("ip", "netns", "del", name, check=False)
    return ""


async def why_not() -> str:
    """Return why namespaces cannot be made here, "" where they can."""
    name = f"mt{os.getpid()}-try"
    try:
        await run("ip", "netns", "add", name)
        await run(
            "ip", "-n", name, "link", "add", "v", "type", "vxlan", "id", "1", "dstport", "4789"
        )
    except (AssertionError, OSError) as error:
        return f"namespaces and VXLAN devices need root with CAP_NET_ADMIN and SYS_ADMIN: {error}"
    finally:
        await run("ip", "netns", "del", name, check=False)
    return ""


@dataclass(slots=True)
class Namespace:
    """One network namespace."""

    name: str

    async def ip(self, *words: str) -> str:
        return await run("ip", "-n", self.name, *words)

    def inside(self, *command: str) -> tuple[str, ...]:
        """Return the command that runs another one inside."""
        return ("ip", "netns", "exec", self.name, *command)

    async def devices(self) -> set[str]:
        """Return the names of all devices but those that every namespace has."""
        lines = (await self.ip("-o", "link")).splitlines()
        return {line.split(": ")[1].split("@")[0] for line in lines} - {"lo"}


@dataclass(slots=True)
class Pod(Namespace):
    """A namespace with an address in a job's network, which answers what it is sent."""

    address: str

    async def reaches(self, other: "Pod", size: int = 8, *, tries: int = 10) -> str:
        """Send so many octets with DF to an address; return answered, silent, or the error."""
        return await self.probe(other.address, size, tries=tries)

    async def probe(self, address: str, size: int = 8, *, tries: int = 10) -> str:
        """Send to any address."""
        words = ("probe", address, "7", str(size), str(tries))
        return (await run(*self.inside(sys.executable, "-c", _PROBE, *words))).strip()


@dataclass(slots=True)
class Underlay:
    """A switch, and what hangs on it. ``gateway``: the test's own address, always of IPv4."""

    prefix: str
    tag: str
    mtu: int
    #: Nodes have an IPv6 address, too, and that is the one of the underlay.
    v6: bool = False
    nodes: list[Namespace] = field(default_factory=list)
    _made: list[str] = field(default_factory=list)
    _echoes: list[asyncio.subprocess.Process] = field(default_factory=list)

    @property
    def gateway(self) -> str:
        return f"{self.prefix}.254"

    def address(self, number: int) -> str:
        """Return the underlay address of a node, counted from 1."""
        return f"fd4d::{number:x}" if self.v6 else self.near(number)

    def near(self, number: int) -> str:
        """Return the address at which the test reaches a node."""
        return f"{self.prefix}.{number}"

    @property
    def room(self) -> int:
        """Return the MTU of a job's network: 50 octets less, 70 over IPv6."""
        return self.mtu - (70 if self.v6 else 50)

    async def namespace(self, word: str) -> str:
        name = f"{self.tag}-{word}"
        await run("ip", "netns", "add", name)
        self._made.append(name)
        await run("ip", "-n", name, "link", "set", "lo", "up")
        return name

    async def begin(self) -> None:
        """Make the switch and join it."""
        switch = await self.namespace("sw")
        mine = f"{self.tag}h"
        await run("ip", "-n", switch, "link", "add", "br0", "type", "bridge")
        await run("ip", "-n", switch, "link", "set", "br0", "mtu", str(self.mtu), "up")
        pair = ("ip", "link", "add", mine, "mtu", str(self.mtu), "type", "veth")
        await run(*pair, "peer", "name", "host", "netns", switch)
        await run(
            "ip", "-n", switch, "link", "set", "host", "mtu", str(self.mtu), "master", "br0", "up"
        )
        await run("ip", "addr", "add", f"{self.gateway}/24", "dev", mine)
        await run("ip", "link", "set", mine, "up")

    async def node(self) -> Namespace:
        """Add a node to the switch."""
        number = len(self.nodes) + 1
        name = await self.namespace(f"n{number}")
        mtu, switch = str(self.mtu), self._made[0]
        pair = ("ip", "-n", name, "link", "add", "eth0", "mtu", mtu, "type", "veth")
        await run(*pair, "peer", "name", f"n{number}", "netns", switch)
        await run(
            "ip", "-n", switch, "link", "set", f"n{number}", "mtu", mtu, "master", "br0", "up"
        )
        await run("ip", "-n", name, "addr", "add", f"{self.near(number)}/24", "dev", "eth0")
        if self.v6:
            mine = f"{self.address(number)}/64"
            await run("ip", "-n", name, "addr", "add", mine, "dev", "eth0", "nodad")
        await run("ip", "-n", name, "link", "set", "eth0", "up")
        self.nodes.append(Namespace(name))
        return self.nodes[-1]

    async def pod(self, node: Namespace, vni: int, address: str, mtu: int) -> Pod:
        """Do what the CNI bridge plugin does with our attachment; the pod answers on port 7."""
        name = await self.namespace(f"p{len(self._made)}")
        bridge, port = f"mvb{vni}", f"veth{len(self._made)}"
        pair = ("ip", "-n", node.name, "link", "add", port, "mtu", str(mtu), "type", "veth")
        await run(*pair, "peer", "name", "job0", "mtu", str(mtu), "netns", name)
        await run("ip", "-n", node.name, "link", "set", port, "master", bridge, "up")
        await run("ip", "-n", name, "addr", "add", address, "dev", "job0")
        await run("ip", "-n", name, "link", "set", "job0", "up")
        pod = Pod(name, address.partition("/")[0])
        words = ("echo", pod.address, "7", "0")
        process = await asyncio.create_subprocess_exec(
            *pod.inside(sys.executable, "-c", _PROBE, *words), stdout=asyncio.subprocess.PIPE
        )
        self._echoes.append(process)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"up\n"
        return pod

    async def end(self) -> None:
        for process in self._echoes:
            process.kill()
            await process.communicate()
        for name in reversed(self._made):
            await run("ip", "netns", "del", name, check=False)


def _prefixes() -> Iterator[str]:
    """Yield networks of 100.64.0.0/10 that no other process uses: 64 for each process number."""
    while True:
        number = (os.getpid() * 64 + next(_NUMBER) % 64) % (1 << 14)
        yield f"100.{64 + number // 256}.{number % 256}"


@asynccontextmanager
async def underlay(nodes: int, mtu: int = 1500, *, v6: bool = False) -> AsyncIterator[Underlay]:
    """Make an underlay with nodes, and take it away again."""
    prefix = next(_prefixes())
    made = Underlay(prefix, f"mt{os.getpid()}x{next(_NUMBER)}", mtu, v6)
    try:
        await made.begin()
        for _ in range(nodes):
            await made.node()
        yield made
    finally:
        await made.end()
