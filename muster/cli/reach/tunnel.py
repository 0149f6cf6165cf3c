"""Bytes to a port of a pod, over a WebSocket of the API server (subresource portforward).

The kubelet's protocol (k8s.io/kubelet/pkg/cri/streaming/portforward/websocket.go): each message
begins with the number of a channel, 0 for data and 1 for an error; the first message of each
channel holds the port. One end of a socket pair is the caller's; a thread carries what goes through
the other.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from muster.cli.kubeconfig.context import Cluster

PROTOCOL: Final = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PIECE: Final = 1 << 16
_OPEN_S: Final = 10.0
_LAST_S: Final = 1.0


class TunnelRefused(Exception):
    """The API server or the kubelet refused; ``status`` is the HTTP status, 0 for none."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True)
class _Ends:
    """What the thread and its starter share."""

    near: socket.socket
    far: socket.socket
    opened: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    #: what the kubelet says of the port
    trouble: str = ""


@contextmanager
def tunnel(cluster: Cluster, namespace: str, pod: str, port: int) -> Iterator[_Ends]:
    """Open a tunnel; ``near`` is a connected socket to the pod's port.

    Raises ``TunnelRefused``, ``OSError`` or ``aiohttp.ClientError``.
    """
    near, far = socket.socketpair()
    ends = _Ends(near, far)
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={port}"
    carrier = threading.Thread(target=_run, args=(cluster, path, ends), daemon=True)
    carrier.start()
    try:
        ends.opened.wait()
        if ends.error is not None:
            raise ends.error
        yield ends
    finally:
        near.close()
        carrier.join(_OPEN_S)
        far.close()


def _run(cluster: Cluster, path: str, ends: _Ends) -> None:
    try:
        asyncio.run(_carry(cluster, path, ends))
    except (aiohttp.ClientError, OSError, TimeoutError, TunnelRefused) as error:
        ends.error = error
    finally:
        ends.opened.set()
        ends.far.close()  # whoever reads at the other end gets an end of file


async def _carry(cluster: Cluster, path: str, ends: _Ends) -> None:
    token = cluster.credential.token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    tls = cluster.tls() if cluster.server.startswith("https://") else None
    async with aiohttp.ClientSession(headers=headers, trust_env=True) as session:
        try:
            socket_ = await session.ws_connect(
                cluster.server + path,
                protocols=(PROTOCOL,),
                ssl=True if tls is None else tls,
                server_hostname=cluster.server_name or None,
                proxy=cluster.proxy or None,
                max_msg_size=0,
                timeout=aiohttp.ClientWSTimeout(ws_close=_OPEN_S),
            )
        except aiohttp.WSServerHandshakeError as error:
            raise TunnelRefused(error.message, error.status) from error
        async with socket_:
            ends.opened.set()
            both = [asyncio.create_task(way(socket_, ends)) for way in (_inward, _outward)]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            await _last_words(both[1])
            for task in both:
                task.cancel()
            # A side that has gone shows as an end of file at the caller's socket.
            await asyncio.gather(*both, return_exceptions=True)


async def _last_words(outward: asyncio.Task[None]) -> None:
    """Give what the pod has sent, or the kubelet has said, a moment to arrive."""
    await asyncio.wait([outward], timeout=_LAST_S)


async def _inward(socket_: aiohttp.ClientWebSocketResponse, ends: _Ends) -> None:
    """Carry what the caller writes."""
    loop = asyncio.get_running_loop()
    ends.far.setblocking(False)
    while piece := await loop.sock_recv(ends.far, _PIECE):
        await socket_.send_bytes(bytes([_DATA]) + piece)
    await socket_.close()


async def _outward(socket_: aiohttp.ClientWebSocketResponse, ends: _Ends) -> None:
    """Carry what the pod answers, until either side ends."""
    loop = asyncio.get_running_loop()
    ends.far.setblocking(False)
    begun = set[int]()
    async for message in socket_:
        data = message.data if isinstance(message.data, bytes) else message.data.encode()
        channel = data[0] if data else _DATA
        if channel not in begun:
            begun.add(channel)  # the port, two bytes
        elif channel == _ERROR:
            ends.trouble = data[1:].decode(errors="replace")
            return
        else:
            await loop.sock_sendall(ends.far, data[1:])
