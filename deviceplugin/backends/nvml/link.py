"""One child process with NVML, seen from the plugin: from its start to its end.

    started ──Ready──► ready ──Broken, DriverMoved, death, silence, stop──► ended
       └──────────────Broken, death, silence──────────────────────────────────┘

Silence: no frame for ``NvmlTimeouts.silence_s`` (for ``slow_s`` before it is ready and while MIG is
changed, when single calls of the driver take long). Then the child hangs in the driver and is
killed. (``asyncio.timeout`` throughout: ``wait_for`` may swallow a cancellation, CPython gh-86296.)
A child that even SIGKILL does not end sits in the kernel: ``gone`` waits for it, and
nobody starts another one into the same trap.
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from deviceplugin.backends.nvml import wire
from deviceplugin.backends.nvml.wire import (
    Answer,
    Beat,
    Broken,
    CutMig,
    Done,
    DriverMoved,
    Failed,
    GpuGone,
    Looked,
    Measured,
    Message,
    Ready,
    Request,
    SwitchMig,
    XidSeen,
)
from deviceplugin.errors import BackendError

COMMAND: Final = (sys.executable, "-P", "-m", "deviceplugin.backends.nvml.child")
_KILLED_S: Final = 2.0  # how long a killed child may take to end before that is said

_END_OF_TALK: Final = (
    asyncio.IncompleteReadError,
    ConnectionError,
    ValueError,
    msgspec.MsgspecError,
)

Event = XidSeen | GpuGone | DriverMoved


@dataclass(frozen=True, slots=True)
class NvmlTimeouts:
    """How long what may take, in seconds."""

    silence_s: float = 10.0
    slow_s: float = 60.0
    """nvmlInit wakes every GPU where persistence mode is off: seconds for each."""
    pause_s: float = 1.0
    """Before a child is started anew; doubled with each that answers nothing."""
    longest_pause_s: float = 60.0
    lost_s: float = 60.0
    """While a GPU is lost: how often a fresh child looks whether it is back."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a child has ended. ``code``: nvmlReturn_t if NVML said so, else 0."""

    reason: str
    code: int = 0
    wanted: bool = False
    """Asked for by us, or because the driver moved: not a fault."""


class Renewed(BackendError):
    """The child was replaced by a fresh one before it answered: ask that one."""


class Link:
    """A child and the conversation with it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        patience: NvmlTimeouts,
    ) -> None:
        self._process = process
        self._reader, self._writer = streams
        self._patience = patience
        self._messages = msgspec.msgpack.Decoder(Message)
        self._asked: dict[int, tuple[Request, asyncio.Future[Answer]]] = {}
        self._next = 0
        self._stop: Ending | None = None
        self._over = False
        self._idle = asyncio.Event()
        self._idle.set()
        self.ready = False
        self.answered = False
        """Whether it has ever answered a request: then a later end starts the back-off anew."""

    @classmethod
    async def start(
        cls, command: Sequence[str], environment: Mapping[str, str], patience: NvmlTimeouts
    ) -> "Link":
        """Start a child. Raises ``OSError``."""
        ours, its = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                str(its.fileno()),
                pass_fds=(its.fileno(),),
                env={**os.environ, **environment},
                stdin=asyncio.subprocess.DEVNULL,
            )
        except BaseException:  # also when cancelled: nobody else would close it
            ours.close()
            raise
        finally:
            its.close()
        return cls(process, await asyncio.open_unix_connection(sock=ours), patience)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    async def run(self, on_ready: Callable[[], None], on_event: Callable[[Event], None]) -> Ending:
        """Listen until the child ends or has to; return why. It is killed when this returns."""
        ending = Ending("the plugin ends", wanted=True)
        try:
            ending = await self._listen(on_ready, on_event)
        finally:
            self._over = True
            self._fail_all(ending)
            self._writer.close()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        return ending

    async def gone(self, on_stuck: Callable[[], None], *, wait: bool = True) -> None:
        """Wait until the killed process has ended; ``on_stuck``: it takes suspiciously long.

        Without ``wait`` no longer than that.
        """
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
        try:
            async with asyncio.timeout(_KILLED_S):
                await self._process.wait()
        except TimeoutError:
            on_stuck()
            if wait:
                await self._process.wait()

    async def idle(self) -> None:
        """Wait until nobody waits for an answer."""
        while self._asked:
            await self._idle.wait()

    def stop(self, reason: str) -> None:
        """Have ``run`` return as if the child had ended by itself, and without fault."""
        self._stop = Ending(reason, wanted=True)
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()  # its end of the socket closes

    async def ask(self, make: Callable[[int], Request]) -> Looked | Measured | Done:
        """Send a request and return its answer. Raises ``BackendError``, ``Renewed``."""
        if self._over:
            raise BackendError("nvml: the child has ended")
        self._next += 1
        request = make(self._next)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[request.id] = (request, future)
        self._idle.clear()
        try:
            self._writer.write(wire.frame(request))
            answer = await future
        finally:
            self._asked.pop(request.id, None)
            if not self._asked:
                self._idle.set()
        if isinstance(answer, Failed):
            raise BackendError(f"nvml: {answer.text}")
        return answer

    async def _listen(
        self, on_ready: Callable[[], None], on_event: Callable[[Event], None]
    ) -> Ending:
        while True:
            try:
                async with asyncio.timeout(self._silence_s()):
                    message = await self._next_message()
            except TimeoutError:
                return self._stop or Ending(self._silent())
            except _END_OF_TALK as error:
                return self._stop or await self._died(error)
            match message:
                case Beat():
                    pass
                case Ready():
                    self.ready = True
                    on_ready()
                case Broken():
                    return Ending(message.text, message.code)
                case DriverMoved():
                    on_event(message)
                    return Ending(message.reason, wanted=True)
                case XidSeen() | GpuGone():
                    on_event(message)
                case Looked() | Measured() | Done() | Failed():
                    self._resolve(message)

    async def _next_message(self) -> Message:
        """Return the next message. Raises one of ``_END_OF_TALK`` when there is none."""
        head = await self._reader.readexactly(wire.LENGTH_BYTES)
        body = await self._reader.readexactly(wire.length(head))
        message: Message = self._messages.decode(body)
        return message

    def _silence_s(self) -> float:
        changing = any(isinstance(asked, SwitchMig | CutMig) for asked, _ in self._asked.values())
        slow = changing or not self.ready
        return self._patience.slow_s if slow else self._patience.silence_s

    def _silent(self) -> str:
        return (
            f"the child (pid {self.pid}) gave no sign for {self._silence_s():g} s: a call of the "
            "driver hangs; see `dmesg` for NVRM and Xid lines"
        )

    async def _died(self, error: Exception) -> Ending:
        """Say how a child ended that has not said it itself."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILLED_S):
                await self._process.wait()
        status = self._process.returncode
        how = f"ended with status {status}" if status is not None else f"said nonsense: {error}"
        return Ending(f"the child (pid {self.pid}) {how}")

    def _resolve(self, answer: Answer) -> None:
        self.answered = True
        _, future = self._asked.get(answer.id, (None, None))
        if future is not None and not future.done():
            future.set_result(answer)

    def _fail_all(self, ending: Ending) -> None:
        kind = Renewed if ending.wanted else BackendError
        for _, future in self._asked.values():
            if not future.done():
                future.set_exception(kind(f"nvml: no answer: {ending.reason}"))
