"""What the server of one resource does next, from what it sees. Pure: the time is an argument.

::

                served              kubelet.sock is there            answered
   ┌──────┐ ───────────► ┌────────┐ ──── REGISTER ────► ┌─────────────┐ ───────► ┌──────────┐
   │ DOWN │              │ SERVED │                     │ REGISTERING │          │ ANSWERED │
   └──────┘              └────────┘ ◄── refused, ────── └─────────────┘          └──────────┘
      ▲                    ▲  ▲  ▲      silent                 │                  │      │ a stream
      │                    │  │  └──── another kubelet.sock ───┘                  │      │ opens
      │                    │  └─────── no stream for STREAM_S, another ───────────┘      ▼
      │                    │           kubelet.sock                               ┌──────────┐
      │                    └────────── stream lost, another kubelet.sock, ─────── │ FOLLOWED │
      │                                another instance ended                     └──────────┘
      └── from all: own socket removed, Node.status differs for long (drifted)

Where the kubelet finds the socket by itself (plugins_registry) there is no REGISTER. SERVED waits
for the kubelet, and after PATIENCE_S the socket is made again, as it only looks at new ones.

Two instances, as in a rolling update: when a stream ends, the kubelet (1.35 and 1.36,
plugin/v1beta1/handler.go, runClient) disconnects whichever plugin is registered for the resource
*by then*, and marks its devices unhealthy. So the end of the older instance disconnects the newer
one, which sees its stream end. Registering again at once could have the same result, so it waits
SETTLE_S. The end of the newer instance leaves the older one with a stream, but the kubelet no
longer allocates from it; only the other's missing socket shows that. The kubelet never dials again,
so in both cases the instance that is left registers again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

STREAM_S: Final = 5.0  # between the answer to Register and ListAndWatch; the kubelet takes ms
PATIENCE_S: Final = 5.0  # for the plugin watcher to find a socket; inotify takes ms
STEADY_S: Final = 10.0  # a registration that lasted this long resets the back-off
OTHERS_S: Final = 2.0  # an instance ends its streams first, its socket goes within half a second
SETTLE_S: Final = 0.2  # until the kubelet is done with a stream that ended; it takes ms
FIRST_RETRY_S: Final = 0.1
LONGEST_RETRY_S: Final = 10.0  # a new kubelet.sock is seen within a second all the same

SocketId = tuple[int, int]
"""Inode and ctime in nanoseconds: another pair is another socket."""


class ServerState(Enum):
    """The states of one resource's server; see the drawing."""

    DOWN = auto()
    SERVED = auto()
    REGISTERING = auto()
    ANSWERED = auto()
    FOLLOWED = auto()


class LifecycleAction(Enum):
    """What the caller does next."""

    WAIT = auto()
    SERVE = auto()
    REGISTER = auto()


@dataclass(frozen=True, slots=True)
class SocketSight:
    """What the caller sees before a step."""

    #: seconds of the caller's clock
    now: float
    #: whether our own socket exists
    own_socket: bool
    #: None while there is no kubelet.sock
    kubelet: SocketId | None
    #: sockets of other instances that serve the same resource and are alive
    others: frozenset[str] = frozenset()


@dataclass(slots=True)
class Lifecycle:
    """The state of one resource's server."""

    #: a random number in [0, 1), which spreads attempts
    jitter: Callable[[], float]
    #: whether the kubelet finds the socket by itself, in plugins_registry
    kubelet_finds: bool = False
    state: ServerState = ServerState.DOWN
    #: why the kubelet does not follow; empty when it does
    reason: str = "not served yet"
    _since: float = 0.0
    _retry_at: float = 0.0
    _attempts: int = 0
    _answered_at: float = 0.0
    _opened: bool = False  # a stream, since it was served or Register was called
    _kubelet: SocketId | None = None
    _others: frozenset[str] = frozenset()

    def step(self, seen: SocketSight) -> LifecycleAction:
        """Return what to do now; report its result by the methods below."""
        if self.state is not ServerState.DOWN and not seen.own_socket:
            self._to(ServerState.DOWN, seen.now, "its socket was removed")
        if seen.kubelet is not None and seen.kubelet != self._kubelet:
            self._another_kubelet(seen.now, seen.kubelet)
        self._others_are(seen.others, seen.now)
        self._time_out(seen.now)
        if self.state is ServerState.DOWN and seen.now >= self._retry_at:
            return LifecycleAction.SERVE
        if self.state is ServerState.SERVED and self._may_register(seen):
            self._opened = False
            self._to(ServerState.REGISTERING, seen.now, "the kubelet has not answered yet")
            return LifecycleAction.REGISTER
        return LifecycleAction.WAIT

    def due_s(self, now: float) -> float:
        """Return in how many seconds the next attempt is due; infinite where none waits."""
        waits = self.state in (ServerState.DOWN, ServerState.SERVED) and self._retry_at > now
        return self._retry_at - now if waits else float("inf")

    def served(self, now: float, *, after_streams: bool = False) -> None:
        """Take in that the socket is served; ``after_streams``: older ones have just ended."""
        if after_streams:
            self._retry_at = now + SETTLE_S
        self._opened = False
        self._to(ServerState.SERVED, now, "not registered yet")

    def failed(self, now: float, why: str) -> None:
        """Take in that serving, or the call of Register, has failed."""
        back_to = ServerState.DOWN if self.state is ServerState.DOWN else ServerState.SERVED
        self._retry(now)
        self._to(back_to, now, why)

    def answered(self, now: float) -> None:
        """Take in that the kubelet has answered Register, or has found and accepted the socket.

        It opens its stream before it answers. Where that has ended by then, no other will come.
        """
        self._answered_at = now
        if self.state in (ServerState.SERVED, ServerState.REGISTERING) and not self._opened:
            self._to(ServerState.ANSWERED, now, "registered, but the kubelet does not listen yet")

    def stream_opened(self, now: float) -> None:
        """Take in that the kubelet reads ListAndWatch."""
        if self.state is not ServerState.DOWN:
            self._opened = True
            self._to(ServerState.FOLLOWED, now, "")

    def stream_lost(self, now: float) -> None:
        """Take in that a stream has ended which the server did not end."""
        if self.state in (ServerState.ANSWERED, ServerState.FOLLOWED):
            if now - self._since >= STEADY_S:
                self._attempts = 0
            self._retry(now)
            self._retry_at = max(self._retry_at, now + SETTLE_S)
            self._to(ServerState.SERVED, now, "the kubelet stopped listening")

    def drifted(self, now: float) -> None:
        """Take in that the Node shows other numbers for long although the kubelet follows."""
        if self.state is ServerState.FOLLOWED:
            self._to(ServerState.DOWN, now, "Node.status.allocatable differs")

    def _another_kubelet(self, now: float, kubelet: SocketId) -> None:
        self._kubelet, self._retry_at, self._attempts = kubelet, now, 0
        self._opened = False
        if self.state in (ServerState.REGISTERING, ServerState.ANSWERED, ServerState.FOLLOWED):
            self._to(ServerState.SERVED, now, "kubelet.sock is another")

    def _others_are(self, others: frozenset[str], now: float) -> None:
        """Register again where another instance has ended since the last time."""
        gone, self._others = self._others - others, others
        if gone and self.state is ServerState.FOLLOWED and now - self._answered_at > OTHERS_S:
            back_to = ServerState.DOWN if self.kubelet_finds else ServerState.SERVED
            self._retry_at = now
            self._to(back_to, now, "another instance has ended, and maybe this one's registration")

    def _time_out(self, now: float) -> None:
        waited = now - self._since
        if self.state is ServerState.ANSWERED and waited >= STREAM_S:
            self.failed(now, f"the kubelet has not listened for {STREAM_S:g} s")
        elif self.state is ServerState.SERVED and self.kubelet_finds and waited >= PATIENCE_S:
            self._retry(now)
            self._to(ServerState.DOWN, now, f"the kubelet has not found it for {PATIENCE_S:g} s")

    def _may_register(self, seen: SocketSight) -> bool:
        return not self.kubelet_finds and seen.kubelet is not None and seen.now >= self._retry_at

    def _retry(self, now: float) -> None:
        """Set the time of the next attempt: exponential, with jitter over its upper half."""
        full = min(LONGEST_RETRY_S, FIRST_RETRY_S * (1 << min(self._attempts, 16)))
        self._attempts += 1
        self._retry_at = now + full * (0.5 + self.jitter() / 2)

    def _to(self, state: ServerState, now: float, reason: str) -> None:
        self.state, self.reason, self._since = state, reason, now
