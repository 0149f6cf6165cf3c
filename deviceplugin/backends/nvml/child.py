"""``python -m deviceplugin.backends.nvml.child FD``: NVML, in a process that may be killed.

    start ──nvmlInit──► register events ──► Ready ──► serve a request, or wait for events ─┐
              │                                              ▲             │               │
              ▼                                              └─────────────┴───────────────┘
           Broken, stay                            Broken or DriverMoved, stay; plugin gone, exit

Having said the last thing it stays until the plugin has heard it and ends it: a socket closed on
this side resets one that the plugin is writing a request to, and what was said would be lost.

One thread does it all: if it hangs in the driver its heartbeats cease, which is what the plugin
looks for. Only pynvml, msgspec and the standard library are imported: this process is small.
"""

import contextlib
import ctypes
import select
import signal
import socket
import sys
import time
from typing import Any, Final

import msgspec
import pynvml

from deviceplugin.backends.nvml import calls, machineview, measurements, wire
from deviceplugin.backends.nvml import cut as nvmlcut
from deviceplugin.backends.nvml.calls import Calls
from deviceplugin.backends.nvml.events import Events
from deviceplugin.backends.nvml.wire import (
    Beat,
    Broken,
    CutMig,
    Done,
    DriverMoved,
    Failed,
    Look,
    Measure,
    Message,
    Ready,
    Request,
    SwitchMig,
)

# How long it waits for an event before it looks for requests: what a request is late at most.
_WAIT_MS: Final = 250
_EAGER_MS: Final = 10  # likewise, for a second after a request: one seldom comes alone
_EAGER_S: Final = 1.0
_BEAT_S: Final = 0.5  # between heartbeats
_DISCARDED_BYTES: Final = 65536  # of requests at once that come too late to be answered
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)


class Child:
    """One child's conversation with the plugin."""

    def __init__(self, plugin: socket.socket) -> None:
        self._plugin = plugin
        self._calls = Calls(self._beat)
        self._beaten = 0.0
        self._asked_at = 0.0
        self._requests = msgspec.msgpack.Decoder(Request)
        self._handles: dict[str, Any] = {}

    def run(self) -> None:
        """Serve until the plugin is gone or NVML is; then wait until the plugin is."""
        try:
            self._calls.ask(pynvml.nvmlInit)
            self._find_handles()
            events = Events(self._calls, self._handles)
            self._send(Ready())
            while self._serve_waiting() and self._tell(events):
                pass
        except pynvml.NVMLError as error:
            self._send(Broken(int(error.value), str(error)))
        while self._plugin.recv(_DISCARDED_BYTES):
            pass

    def _find_handles(self) -> None:
        """Note every GPU that answers; a lost one is found by ``Look``."""
        for index in range(int(self._calls.ask(pynvml.nvmlDeviceGetCount))):
            try:
                handle = self._calls.ask(pynvml.nvmlDeviceGetHandleByIndex, index)
                self._handles[str(self._calls.ask(pynvml.nvmlDeviceGetUUID, handle))] = handle
            except pynvml.NVMLError as error:
                if calls.is_broken(error):
                    raise

    def _tell(self, events: Events) -> bool:
        """Tell what happens in the next moment; return whether to go on."""
        eager = time.monotonic() - self._asked_at < _EAGER_S
        happened = events.wait(_EAGER_MS if eager else _WAIT_MS)
        for event in happened:
            self._send(event)
        self._beat()
        return not any(isinstance(event, DriverMoved) for event in happened)

    def _serve_waiting(self) -> bool:
        """Answer the requests that have come; return whether the plugin is still there."""
        while select.select([self._plugin], [], [], 0)[0]:
            head = self._read(wire.LENGTH_BYTES)
            body = self._read(wire.length(head)) if head else b""
            if not body:
                return False
            self._send(self._answer(self._requests.decode(body)))
            self._asked_at = time.monotonic()
        return True

    def _answer(self, request: Request) -> Message:
        try:
            return self._done(request)
        except nvmlcut.CutError as refused:
            return Failed(request.id, refused.code, str(refused))
        except pynvml.NVMLError as error:
            if calls.is_broken(error):
                raise
            return Failed(request.id, int(error.value), _explained(error))

    def _done(self, request: Request) -> Message:
        match request:
            case Look():
                return machineview.look(self._calls, request.id)
            case Measure():
                return measurements.measure(self._calls, self._handles, request.id)
            case SwitchMig():
                nvmlcut.switch(self._calls, request.gpu, enabled=request.enabled)
            case CutMig():
                nvmlcut.cut(self._calls, request.gpu, request.remove, request.make)
        return Done(request.id)

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beaten >= _BEAT_S:
            self._beaten = now
            self._send(Beat())

    def _send(self, message: Message) -> None:
        self._plugin.sendall(wire.frame(message))

    def _read(self, count: int) -> bytes:
        """Return so many bytes, none at all when the plugin has gone."""
        read = b""
        while len(read) < count:
            some = self._plugin.recv(count - len(read))
            if not some:
                return b""
            read += some
        return read


def _explained(error: pynvml.NVMLError) -> str:
    """Return what NVML says, and what that means where it says it of us."""
    if error.value != pynvml.NVML_ERROR_NO_PERMISSION:
        return calls.said(error)
    return (
        f"{calls.said(error)}: cutting GPUs needs CAP_SYS_ADMIN or the capability mig/config "
        "(NVIDIA_MIG_CONFIG_DEVICES=all); manifests/components/device-plugin-mig adds it"
    )


def main() -> None:
    """Run with the socket whose number is the first argument."""
    # Hanging in the driver it would not see that the plugin has gone: the kernel ends it then.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the plugin has gone
        Child(socket.socket(fileno=int(sys.argv[1]))).run()


if __name__ == "__main__":
    main()
