"""The phase of `muster bench webhook` with hostile clients.

Half of the slow clients stop in the middle of the head, the other half send most of 7 MiB and then
stop. All stay for as long as they are let; meanwhile good calls are made, and the memory of the
webhook is looked at (``VmHWM``, its highest so far).
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.benches import tlsload
from loadtest.benches.tlsload import Target

_BODY_BYTES: Final = 7 * 1024 * 1024
_HELD_BACK: Final = 1024  # bytes of a body that are never sent
_CHUNK: Final = 1 << 16
_GOOD_CALLS: Final = 200  # in each of the rounds between slow clients
_STAY_S: Final = 8.0  # longer than a client has for sending its body
_KIB: Final = 1024


@dataclass(slots=True)
class _Slow:
    """One slow client: what it has still to send."""

    connection: ssl.SSLSocket
    left: memoryview


def hostile(target: Target, bundle: bytes, clients: int, pid: int) -> dict[str, object]:
    """Bring ``clients`` slow ones while good calls are made; return what it came to."""
    context = tlsload.trusting(bundle)
    before = _peak_mib(pid)
    calls = failed = refused = 0
    slow: list[_Slow] = []
    try:
        for number, data in enumerate(_unfinished(clients)):
            try:
                slow.append(_dial(target, context, data))
            except OSError:
                refused += 1
            if number % 100 == 99:
                refused += _push(slow, 0.5)
                done = tlsload.closed(target, context, 4, _GOOD_CALLS)
                calls, failed = calls + len(done.seconds), failed + done.errors
        until = time.monotonic() + _STAY_S
        while time.monotonic() < until:
            refused += _push(slow, 0.5)
            done = tlsload.closed(target, context, 4, _GOOD_CALLS)
            calls, failed = calls + len(done.seconds), failed + done.errors
    finally:
        for each in slow:
            each.connection.close()
    peak = _peak_mib(pid)
    return {
        "slow_clients": clients,
        "slow_clients_cut_off": refused,
        "calls_beside_slow_clients": calls,
        "memory_before_mib": before,
        "memory_peak_mib": peak,
        "failed": failed,
    }


def _unfinished(clients: int) -> Iterator[memoryview]:
    """Yield what each sends: part of a head, or a head and most of a body."""
    whole = memoryview(tlsload.request("/mutate", b" " * _BODY_BYTES))
    for number in range(clients):
        yield whole[: 100 if number % 2 else len(whole) - _HELD_BACK]


def _dial(target: Target, context: ssl.SSLContext, data: memoryview) -> _Slow:
    plain = socket.create_connection(target.address, timeout=5)
    connection = context.wrap_socket(plain, server_hostname=target.address[0])
    connection.setblocking(False)
    return _Slow(connection, data)


def _push(slow: list[_Slow], seconds: float) -> int:
    """Send on for a while; return how many were cut off, which are taken out of the list."""
    gone: list[_Slow] = []
    until = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for each in slow:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if each.left else 0)
            selector.register(each.connection, events, each)
        while selector.get_map() and time.monotonic() < until:
            for key, _ in selector.select(0.05):
                each = key.data
                if not _step(each):
                    selector.unregister(each.connection)
                    each.connection.close()
                    gone.append(each)
                elif not each.left and key.events & selectors.EVENT_WRITE:
                    selector.modify(each.connection, selectors.EVENT_READ, each)
    for each in gone:
        slow.remove(each)
    return len(gone)


def _step(client: _Slow) -> bool:
    """Send a piece and look for a reply; return whether the connection is still open."""
    try:
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError):
            if client.left:
                client.left = client.left[client.connection.send(client.left[:_CHUNK]) :]
        return bool(client.connection.recv(_CHUNK)) and False
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return True
    except OSError:
        return False


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / _KIB
