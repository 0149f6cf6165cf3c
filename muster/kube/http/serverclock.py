"""The API server's clock, read from the Date header of an answer.

The header has whole seconds and the answer was under way for a while, so a difference is known
only to about a second and half the round trip (RFC 9110 section 6.6.1).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import aiohttp

from muster.kube.errors import DecodeError, TransportError
from muster.kube.http.auth import Auth

_TIMEOUT_S: Final = 10.0
_RESOLUTION_S: Final = 1.0  # of the header: it is cut off, not rounded


@dataclass(frozen=True, slots=True)
class Skew:
    """How far the API server's clock is ahead of ours, and how exactly that is known."""

    #: Negative where the API server's clock is behind ours.
    ahead_s: float
    #: The true difference is within so many seconds of ``ahead_s``.
    uncertainty_s: float

    @property
    def certain_s(self) -> float:
        """The smallest possible difference, in seconds; 0 if the clocks may be equal."""
        return max(0.0, abs(self.ahead_s) - self.uncertainty_s)

    @property
    def possible_s(self) -> float:
        """The largest possible difference, in seconds."""
        return abs(self.ahead_s) + self.uncertainty_s


async def skew(auth: Auth, clock: Callable[[], float] = time.time) -> Skew:
    """Ask the API server once. ``clock``: ours, in seconds since the epoch.

    Only the Date header of the answer counts: its body and a status below 500 are ignored. Raises
    ``TransportError`` (also for a status of 500 or more, which something in front of the API server
    may have sent), ``DecodeError`` and ``AuthError``.
    """
    credentials = await auth.current()
    tls = True if credentials.tls is None else credentials.tls
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout, headers=credentials.headers) as session:
            before, began = clock(), time.monotonic()
            url = credentials.server + "/version"
            name, proxy = credentials.server_hostname, credentials.proxy
            async with session.get(url, ssl=tls, server_hostname=name, proxy=proxy) as reply:
                trip_s = time.monotonic() - began
                status, text = reply.status, reply.headers.get("Date", "")
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise TransportError(f"{credentials.server}: {error}") from error
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise TransportError(f"GET {url}: status {status}")
    return between(text, before, trip_s)


def between(header: str, before: float, trip_s: float) -> Skew:
    """Compare a Date header with our time ``before`` asking; ``trip_s``: the round trip."""
    try:
        theirs = parsedate_to_datetime(header)
    except ValueError as error:
        raise DecodeError(f"Date header {header!r}: not a date") from error
    ahead_s = theirs.timestamp() + _RESOLUTION_S / 2 - (before + trip_s / 2)
    return Skew(ahead_s, _RESOLUTION_S / 2 + trip_s / 2)
