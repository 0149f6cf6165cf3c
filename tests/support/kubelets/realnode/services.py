"""Services and their names for the pods of one node. A program, in the node's network.

    services.py SERVER TOKEN-FILE CA

It does in user space what kube-proxy and CoreDNS do: the machine's kernel need have no packet
filter, and nothing has to be built. ::

    pod ── 10.96.0.80:443 ──► an address of lo ──► this program ──► a ready endpoint of the Service
     └──── 10.96.0.10:53, muster-extender.muster-system.svc.cluster.local? ──► 10.96.0.80

A connection stays with its endpoint when that is no longer ready, as with kube-proxy. UDP Services,
session affinity, headless Services and names of pods are not needed here, and not served.
"""

import asyncio
import random
import struct
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

DNS: Final = "10.96.0.10"
DOMAIN: Final = "cluster.local"
READY: Final = "services are served"
_EVERY_S: Final = 0.2  # between two reads of Services and endpoints
_CHUNK: Final = 65_536  # bytes
_HEADER: Final = struct.Struct(">HHHHHH")  # RFC 1035, 4.1.1
_ANSWER: Final = struct.Struct(">HHHIH")  # name, type, class, TTL, length; RFC 1035, 4.1.3
_A, _IN, _POINTER, _NXDOMAIN = 1, 1, 0xC00C, 3
_TTL_S: Final = 1


@dataclass
class Services:
    """What is known of the cluster, and the ports that are served for it."""

    names: dict[str, str] = field(default_factory=dict)  # "service.namespace" → its address
    endpoints: dict[tuple[str, int], list[tuple[str, int]]] = field(default_factory=dict)
    _listening: dict[tuple[str, int], asyncio.Server] = field(default_factory=dict)

    async def update(self, services: Iterable[Any], slices: Iterable[Any]) -> None:
        """Take over what the API server has now."""
        ready: dict[tuple[str, str, str], list[tuple[str, int]]] = {}
        for part in slices:
            for key, address in _ready(part):
                ready.setdefault(key, []).append(address)
        self.endpoints = {}
        for service in services:
            meta, spec = service["metadata"], service["spec"]
            address = spec.get("clusterIP", "None")
            if address == "None":
                continue
            self.names[f"{meta['name']}.{meta['namespace']}"] = address
            for port in spec["ports"]:
                place = (address, port["port"])
                key = (meta["namespace"], meta["name"], port.get("name", ""))
                self.endpoints[place] = ready.get(key, [])
                await self._listen(place)

    async def _listen(self, place: tuple[str, int]) -> None:
        if place in self._listening:
            return
        own(place[0])

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connect(place, reader, writer)

        self._listening[place] = await asyncio.start_server(serve, *place)

    async def _connect(
        self, place: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Join a connection to one of the Service's endpoints; without one it is cut."""
        there = self.endpoints.get(place, [])
        try:
            back, forth = await asyncio.open_connection(*random.choice(there))
        except (IndexError, OSError):
            writer.transport.abort()
            return
        await asyncio.gather(_pass_on(reader, forth), _pass_on(back, writer))


def _ready(part: Any) -> Iterable[tuple[tuple[str, str, str], tuple[str, int]]]:
    """Yield ((namespace, service, port's name), endpoint) of an EndpointSlice."""
    meta = part["metadata"]
    service = meta.get("labels", {}).get("kubernetes.io/service-name", meta["name"])
    for endpoint in part.get("endpoints") or ():
        if endpoint.get("conditions", {}).get("ready", True):
            for port in part.get("ports") or ():
                key = (meta["namespace"], service, port.get("name") or "")
                yield key, (endpoint["addresses"][0], port["port"])


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
            return
    writer.close()


def own(address: str) -> None:
    """Make an address one of this network's own; it may be already."""
    words = ("ip", "addr", "add", f"{address}/32", "dev", "lo")
    subprocess.run(words, check=False, capture_output=True)


class Names(asyncio.DatagramProtocol):
    """Answers for NAME.NAMESPACE.svc.cluster.local: an A record; nothing for other types."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # In Python 3.11 what asyncio makes is no subclass of DatagramTransport, only like one.
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        with suppress(IndexError, struct.error, UnicodeDecodeError):
            self._transport.sendto(answer(data, self._services.names), addr)


async def serve_names(services: Services, place: tuple[str, int]) -> asyncio.BaseTransport:
    """Answer questions at an address and port, until the transport is closed."""
    loop = asyncio.get_running_loop()
    made, _ = await loop.create_datagram_endpoint(lambda: Names(services), local_addr=place)
    return made


def answer(question: bytes, names: dict[str, str]) -> bytes:
    """Return the answer to one question of DNS (RFC 1035)."""
    number, *_ = _HEADER.unpack_from(question)
    labels, at = [], _HEADER.size
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode("ascii").lower())
        at += 1 + length
    asked = question[_HEADER.size : at + 5]
    kind, _ = struct.unpack_from(">HH", question, at + 1)
    service, separator, rest = ".".join(labels).partition(".svc.")
    address = names.get(service) if separator and rest == DOMAIN else None
    found = address is not None and kind == _A
    code = 0 if address is not None else _NXDOMAIN
    head = _HEADER.pack(number, 0x8580 | code, 1, int(found), 0, 0)
    if not found or address is None:
        return head + asked
    data = bytes(map(int, address.split(".")))
    return head + asked + _ANSWER.pack(_POINTER, _A, _IN, _TTL_S, len(data)) + data


async def main(server: str, token: str, ca: Path) -> None:
    from loadtest.testbed.client.api import Api  # noqa: PLC0415 - whoever imports this need not

    services = Services()
    own(DNS)
    await serve_names(services, (DNS, 53))
    said = False
    async with Api(server, token=token, ca=ca) as api:
        while True:
            found = await api.get("/api/v1/services")
            slices = await api.get("/apis/discovery.k8s.io/v1/endpointslices")
            await services.update(found["items"], slices["items"])
            if not said and "kubernetes.default" in services.names:
                sys.stdout.write(f"{READY}\n")
                sys.stdout.flush()
                said = True
            await asyncio.sleep(_EVERY_S)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3])))
