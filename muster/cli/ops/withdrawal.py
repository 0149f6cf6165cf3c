"""What must be done before Muster is taken out of a cluster, and what is left to delete afterwards.

::

    before   delete the webhooks' configurations    no new gates, and gates may be lifted
             stop the extender (static-pod way)     no plan pins a pod that is about to be released
             lift the gates                         `muster ungate --all`
             wait for a second scheduler's pods     no other scheduler would place them
    after    delete the Secrets and Leases that Muster's programs made

Every step may be repeated: a second run does what is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from muster.cli.ops import admissioncalls, issuing
from muster.cli.ops.clustercertificates import MADE_HERE
from muster.cli.ops.ungating import PodChoice, ungate
from muster.kube.errors import NotFound
from muster.kube.http.auth import Auth
from muster.kube.http.transport import HttpRequest, Retry, Transport

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_REGISTRATIONS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_MERGE: Final = "application/merge-patch+json"
_POLL_S: Final = 2.0  # a list with two field selectors; kube-scheduler places pods in milliseconds
_NAMED: Final = 5  # pods in a message, then their number
_AUTHORITY: Final = "muster-webhook-authority"
_LEASES: Final = ("muster-extender", "muster-scheduler")
_CERTIFICATES: Final = (
    issuing.EXTENDER_SECRET,
    issuing.SCHEDULER_SECRET,
    admissioncalls.SECRET,
)

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """From where Muster is taken, and how it was called there."""

    namespace: str
    #: The second scheduler's name, None where the cluster's own called Muster.
    scheduler: str | None = None
    #: How long its pods are waited for, seconds.
    wait_s: float = 0.0


@dataclass(slots=True)
class Outcome:
    """What was done, and why Muster must stay, a sentence each; no obstacle: it may go."""

    done: list[str]
    obstacles: list[str]


class _Meta(msgspec.Struct):
    name: str
    namespace: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class _Object(msgspec.Struct):
    metadata: _Meta


class _Page(msgspec.Struct):
    items: list[_Object]


async def withdraw(auth: Auth, asked: Withdrawal, sleep: Sleep = asyncio.sleep) -> Outcome:
    """Take the steps before Muster's objects are deleted; raises ``KubeError``."""
    outcome = Outcome([], [])
    async with Transport(auth, user_agent="muster-withdraw", retry=Retry()) as transport:
        for kind in _REGISTRATIONS:
            if await _delete(transport, f"{_ADMISSION}/{kind}/muster-webhook"):
                outcome.done.append(f"deleted {kind[:-1]}/muster-webhook: no pod is gated now")
        if asked.scheduler is None:
            outcome.done += await _stop_planning(transport, asked.namespace)
        lifted = await ungate(auth, PodChoice())
        outcome.done.append(f"lifted the gates of {len(lifted.ungated)} pods")
        outcome.obstacles += lifted.refusals
        if asked.scheduler is not None and not lifted.refusals:
            waiting = await _wait(transport, asked.scheduler, asked.wait_s, sleep)
            outcome.obstacles += _left_waiting(asked.scheduler, waiting)
    return outcome


async def delete_leftovers(auth: Auth, namespace: str) -> list[str]:
    """Delete what Muster's programs made beside their manifests; return a line each.

    Secrets of cert-manager and of the installer's own making stay. Raises ``KubeError``.
    """
    done = []
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    async with Transport(auth, user_agent="muster-withdraw", retry=Retry()) as transport:
        made = [name for name in _CERTIFICATES if await _made_here(transport, f"{secrets}/{name}")]
        paths = [f"{secrets}/{name}" for name in (_AUTHORITY, *made)]
        paths += [f"{leases}/{name}" for name in _LEASES]
        for path in paths:
            if await _delete(transport, path):
                kind, _, name = path.rpartition("/")
                done.append(f"deleted {kind.rpartition('/')[2][:-1]}/{name}")
    return done


async def _stop_planning(transport: Transport, namespace: str) -> list[str]:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/muster-extender/scale"
    body = b'{"spec":{"replicas":0}}'
    try:
        await transport.send(HttpRequest("PATCH", path, body=body, content_type=_MERGE))
    except NotFound:
        return []
    return ["stopped the extender: no new plans"]


async def _wait(transport: Transport, scheduler: str, limit_s: float, sleep: Sleep) -> list[str]:
    """Return NAMESPACE/NAME of the scheduler's pods that are still unbound after that time."""
    left = limit_s
    while (waiting := await _unbound(transport, scheduler)) and left > 0:
        await sleep(_POLL_S)
        left -= _POLL_S
    return waiting


async def _unbound(transport: Transport, scheduler: str) -> list[str]:
    query = {"fieldSelector": f"spec.schedulerName={scheduler},spec.nodeName=,status.phase=Pending"}
    raw = await transport.send(HttpRequest("GET", "/api/v1/pods", query))
    items = msgspec.json.decode(raw, type=_Page).items
    return [f"{item.metadata.namespace}/{item.metadata.name}" for item in items]


def _left_waiting(scheduler: str, waiting: list[str]) -> list[str]:
    if not waiting:
        return []
    more = "" if len(waiting) <= _NAMED else f" and {len(waiting) - _NAMED} more"
    names = ", ".join(waiting[:_NAMED]) + more
    what = f"{len(waiting)} pods wait for the scheduler {scheduler}: {names}"
    remedy = "wait until they run, or delete them, and uninstall again"
    return [f"{what}. No other scheduler places them, and their gates are lifted: {remedy}"]


async def _made_here(transport: Transport, path: str) -> bool:
    try:
        raw = await transport.send(HttpRequest("GET", path))
    except NotFound:
        return False
    key, value = MADE_HERE
    return msgspec.json.decode(raw, type=_Object).metadata.labels.get(key) == value


async def _delete(transport: Transport, path: str) -> bool:
    """Delete an object; return whether it existed."""
    try:
        await transport.send(HttpRequest("DELETE", path))
    except NotFound:
        return False
    return True
