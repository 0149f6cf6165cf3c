"""`muster bench webhook`: admission reviews over TLS, beside an echo of the same server library.

::

    throughput   closed loop, echo and webhook in turns
    latency      open loop at a fixed rate, echo and webhook in turns
    rotation     a webhook with an authority that is valid for seconds, three of them, under load
    hostile      a thousand clients that never finish, bodies of 7 MiB, good calls in between

The webhook runs as a program with a certificate of its own and a ClusterProfile; the pods are those
of a gang, 8 KB each, and every rule of injection has something to do on them
(``loadtest/benches/reviews.py``). The client (``loadtest/benches/tlsload.py``) shares the machine
and checks that each reply carries its patch.

``reviews_per_second``: median of the rounds of the closed loop. ``p99_ms``: median of the rounds'
99th percentiles in the open loop, measured from the time a request was due. ``p99_ratio_to_echo``:
median of that of the webhook over that of the echo, round by round. ``errors``: calls of all phases
that were not answered with the right patch.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import ssl
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from loadtest.benches import reviews, tlsload
from loadtest.benches.hostile import hostile
from loadtest.benches.rotating import rotating
from loadtest.benches.tlsload import Outcome, Target
from loadtest.testbed.controlplane import credentials
from loadtest.testbed.controlplane.credentials import Credentials
from loadtest.testbed.controlplane.process import Child, Children
from loadtest.testbed.controlplane.procfs import cpu_seconds

_WARM_UP: Final = 400  # requests: caches, the interpreter's specialisation, TLS
_PODS: Final = 64  # different reviews, sent in turn
_ALONE: Final = 1_024  # jobs of one pod: more than the webhook remembers answers
_MUTATE: Final = "/mutate"
_UID: Final = b'"uid":"'


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked on the command line."""

    connections: int = 16
    rate: float = 1_500.0
    rounds: int = 5
    #: Length of each round, on each side.
    seconds: float = 3.0
    poisson: bool = False
    alone: bool = False
    slow_clients: int = 1_000
    rotations: int = 3

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        for name in ("connections", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} {getattr(self, name)}: must be at least 1")
        for name in ("rate", "seconds"):
            if getattr(self, name) <= 0:
                raise ValueError(f"--{name} {getattr(self, name)}: must be more than 0")
        for name in ("slow_clients", "rotations"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} {getattr(self, name)}: must not be negative")


def run(settings: Settings) -> dict[str, object]:
    """Measure; returns the figures under the keys that the module explains."""
    return asyncio.run(_run(settings))


async def _run(settings: Settings) -> dict[str, object]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muster-bench-")))
        children = await stack.enter_async_context(Children(folder))
        made = credentials.create(folder)
        bundle = made.ca.read_bytes()
        context = tlsload.trusting(bundle)
        webhook, url = await _webhook(children, folder, "webhook", _files(made))
        files = ("--chain", str(made.certificate), "--key", str(made.key))
        echo, echo_url = await children.start_module("echo", "loadtest.benches.echo", *files)
        pods = _ALONE if settings.alone else _PODS
        bodies = [reviews.review(index, alone=settings.alone) for index in range(pods)]
        ours, floor = _mutations(url, bodies), _echoes(echo_url, bodies)

        def measure() -> dict[str, object]:
            _check(ours, context)
            for target in (floor, ours):
                tlsload.closed(target, context, settings.connections, _WARM_UP)
            costs = {"echo": _Costs(echo), "webhook": _Costs(webhook)}
            both = _Both(settings, context, ours, floor, costs)
            return {"connections": settings.connections, **both.throughput(), **both.latency()}

        figures = await asyncio.to_thread(measure)
        lost = [figures.pop("failed")]
        if settings.rotations:
            short = {**_directory(folder / "authority"), **_SHORT}
            _, rotated = await _webhook(children, folder, "rotated", short)
            answer = await asyncio.to_thread(
                rotating, _mutations(rotated, bodies), folder / "authority", settings.rotations
            )
            lost.append(answer.pop("failed"))
            figures |= answer
        if settings.slow_clients:
            answer = await asyncio.to_thread(
                hostile, ours, bundle, settings.slow_clients, webhook.pid
            )
            lost.append(answer.pop("failed"))
            figures |= answer
        children.check()
    return {**figures, "errors": sum(map(int, map(str, lost)))}


def run_callers(settings: Settings) -> dict[str, object]:
    """Measure what it costs that a caller shows a token: two webhooks in turns, one asks for it.

    ``cpu_us_per_review``, ``reviews_per_second``: with the token; ``cpu_us_unasked``,
    ``unasked_per_second``: without.
    """
    return asyncio.run(_run_callers(settings))


async def _run_callers(settings: Settings) -> dict[str, object]:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="muster-bench-")))
        children = await stack.enter_async_context(Children(folder))
        made = credentials.create(folder)
        context = tlsload.trusting(made.ca.read_bytes())
        token = folder / "callers-token"
        token.write_text(_SHOWN, encoding="utf-8")
        callers = {"callers": {"required": True, "tokenFile": str(token)}}
        asking, url = await _webhook(children, folder, "asking", _files(made), callers)
        open_, open_url = await _webhook(children, folder, "open", _files(made))
        bodies = [reviews.review(index, alone=settings.alone) for index in range(_PODS)]
        ours, floor = _mutations(url, bodies, _SHOWN), _mutations(open_url, bodies)

        def measure() -> dict[str, object]:
            for target in (floor, ours):
                _check(target, context)
                tlsload.closed(target, context, settings.connections, _WARM_UP)
            costs = {"echo": _Costs(open_), "webhook": _Costs(asking)}
            both = _Both(settings, context, ours, floor, costs)
            return {**both.throughput(), "errors": both.failed}

        found = await asyncio.to_thread(measure)
        children.check()
    found["cpu_us_unasked"] = found.pop("cpu_us_per_echo")
    found["unasked_per_second"] = found.pop("echo_per_second")
    return found


# --- the two servers ------------------------------------------------------------------

_SHOWN: Final = "of-the-api-server-of-this-bench-0123456789abcdef"
"""The caller's bearer token."""
_SHORT: Final[dict[str, object]] = {
    "authoritySeconds": 6, "leafSeconds": 6, "settleSeconds": 0.5, "checkSeconds": 0.1,
}  # fmt: skip
"""An authority that is replaced every five seconds or so."""


def _files(made: Credentials) -> dict[str, object]:
    return {"source": "files", "certFile": str(made.certificate), "keyFile": str(made.key)}


def _directory(folder: Path) -> dict[str, object]:
    return {"source": "directory", "path": str(folder)}


async def _webhook(
    children: Children,
    folder: Path,
    name: str,
    certificates: dict[str, object],
    more: Mapping[str, object] | None = None,
) -> tuple[Child, str]:
    """Start the webhook as a program, with the profile of the benchmark's cluster.

    ``more``: further sections of its configuration.
    """
    profile = folder / "cluster.yaml"
    profile.write_text(reviews.CLUSTER_PROFILE, encoding="utf-8")
    config = folder / f"{name}.json"  # JSON is YAML
    settings = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "WebhookConfiguration",
        "certificates": certificates,
        "injection": {"clusterProfile": str(profile)},
        "drainSeconds": 0,
        **(more or {}),
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    alone = {k: v for k, v in os.environ.items() if k != "KUBERNETES_SERVICE_HOST"}
    return await children.start_module(name, "webhook", "--config", str(config), environment=alone)


# --- requests and right answers -------------------------------------------------------


def _mutations(url: str, bodies: list[bytes], token: str = "") -> Target:
    uids = [_uid(body) for body in bodies]

    def accept(number: int, body: bytes) -> bool:
        return b'"patch":"' in body and uids[number % len(uids)] in body

    return Target(url, [tlsload.request(_MUTATE, body, token) for body in bodies], accept)


def _echoes(url: str, bodies: list[bytes]) -> Target:
    def accept(number: int, body: bytes) -> bool:
        return len(body) == len(bodies[number % len(bodies)])

    return Target(url, [tlsload.request("/echo", body) for body in bodies], accept)


def _uid(body: bytes) -> bytes:
    start = body.index(_UID) + len(_UID)
    return body[start : body.index(b'"', start)]


def _check(target: Target, context: ssl.SSLContext) -> None:
    """Look once at what the patch says: every rule must have had its word."""
    replies: list[bytes] = []

    def accept(_number: int, body: bytes) -> bool:
        replies.append(body)
        return True

    keep = Target(target.url, target.requests[:1], accept)
    tlsload.closed(keep, context, 1, 1)
    response = json.loads(replies[0])["response"]
    patch = base64.b64decode(response.get("patch", "")).decode()
    missing = [word for word in reviews.INJECTED if word not in patch]
    if missing or response.get("warnings"):
        lacks, warnings = ", ".join(missing) or "nothing", response.get("warnings")
        raise RuntimeError(f"the patch lacks {lacks}; warnings: {warnings}")


# --- the two loops --------------------------------------------------------------------


class _Costs:
    """CPU time of a program over a phase."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._before = 0.0
        self.micros: list[float] = []

    def start(self) -> None:
        self._before = cpu_seconds(self._child.pid)

    def stop(self, calls: int) -> None:
        if calls:
            self.micros.append((cpu_seconds(self._child.pid) - self._before) / calls * 1e6)


class _Both:
    """Echo and webhook in turns, who begins changing every round."""

    def __init__(
        self,
        settings: Settings,
        context: ssl.SSLContext,
        ours: Target,
        floor: Target,
        costs: dict[str, _Costs],
    ) -> None:
        self._settings, self._context, self._costs = settings, context, costs
        self._targets = {"echo": floor, "webhook": ours}
        self._sent = dict.fromkeys(self._targets, _WARM_UP)
        self._failed = 0

    @property
    def failed(self) -> int:
        """Calls without the right answer."""
        return self._failed

    def throughput(self) -> dict[str, object]:
        """Return the figures of the closed loop."""
        s, rates = self._settings, {"echo": 1_000.0, "webhook": 1_000.0}
        found: dict[str, list[float]] = {"echo": [], "webhook": []}

        def once(name: str, target: Target) -> Outcome:
            count = int(rates[name] * s.seconds) + 1
            done = tlsload.closed(target, self._context, s.connections, count)
            rates[name] = len(done.seconds) / done.took
            found[name].append(rates[name])
            return done

        self._rounds(once)
        return {
            "reviews_per_second": statistics.median(found["webhook"]),
            "echo_per_second": statistics.median(found["echo"]),
            "cpu_us_per_review": statistics.median(self._costs["webhook"].micros),
            "cpu_us_per_echo": statistics.median(self._costs["echo"].micros),
        }

    def latency(self) -> dict[str, object]:
        """Return the figures of the open loop."""
        s = self._settings
        found: dict[str, list[tuple[float, float]]] = {"echo": [], "webhook": []}
        due = list(_due(s))

        def once(name: str, target: Target) -> Outcome:
            done = tlsload.opened(target, self._context, s.connections, due)
            if done.seconds:
                low, high = np.percentile(np.asarray(done.seconds) * 1000, (50, 99))
                found[name].append((float(low), float(high)))
            return done

        self._rounds(once)
        pairs = zip(found["webhook"], found["echo"], strict=True)
        return {
            "rate": s.rate,
            "p99_ms": statistics.median(high for _, high in found["webhook"]),
            "p99_ratio_to_echo": statistics.median(ours[1] / floor[1] for ours, floor in pairs),
            "p50_ms": statistics.median(low for low, _ in found["webhook"]),
            "echo_p99_ms": statistics.median(high for _, high in found["echo"]),
            "echo_p50_ms": statistics.median(low for low, _ in found["echo"]),
            "failed": self._failed,
        }

    def _rounds(self, once: Callable[[str, Target], Outcome]) -> None:
        for number in range(self._settings.rounds):
            order = list(self._targets.items())
            for name, target in order if number % 2 == 0 else reversed(order):
                turned = _turned(target, self._sent[name] % len(target.requests))
                self._costs[name].start()
                done = once(name, turned)
                self._costs[name].stop(len(done.seconds))
                self._failed += done.errors
                self._sent[name] += len(done.seconds) + done.errors


def _turned(target: Target, first: int) -> Target:
    """Return a target that goes on where the last turn ended.

    Short turns that all began with the first request would find the answers to it remembered.
    """

    def accept(number: int, body: bytes) -> bool:
        return target.accept(number + first, body)

    return Target(target.url, [*target.requests[first:], *target.requests[:first]], accept)


def _due(settings: Settings) -> Iterator[float]:
    """Yield the times at which requests are due: equal gaps, or those of a Poisson process."""
    drawn, now = random.Random(0), 0.0
    while now < settings.seconds:
        yield now
        now += drawn.expovariate(settings.rate) if settings.poisson else 1 / settings.rate
