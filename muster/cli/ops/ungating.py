"""Lift Muster's gate, and no other, from the pods that are chosen.

A gated pod waits for the controller that owns the gate. Before Muster is uninstalled, its gates
must be lifted, or the pods wait for ever. kube-scheduler then places a pod without a plan like any
other, not as part of its gang. Gates of other controllers (Kueue) stay.

    list the unbound pods ──► lift, 32 at a time ──► list again, until none is gated
                                                     or all that are were refused
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from muster.kube.client import KubeClient
from muster.kube.errors import APIError, Invalid, NotFound
from muster.kube.http.auth import Auth
from muster.kube.names import PLAN_GATE
from muster.kube.resources import PODS, Resource
from muster.kube.wire import PartialObject, Pod

_IN_FLIGHT: Final = 32  # as the extender releases
_UNBOUND: Final = "spec.nodeName="  # a gated pod is never bound; the others are not listed
_MAX_ROUNDS: Final = 10  # more pods may come as long as the webhook gates them
_MUTATING: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    PartialObject,
    namespaced=False,
)
_REMEDY: Final = (
    "; the webhook that guards gates does not answer: "
    "kubectl delete validatingwebhookconfiguration muster-webhook, and run this again"
)


@dataclass(frozen=True, slots=True)
class PodChoice:
    """Which pods to ungate: ``pods``, else those of a namespace, else all."""

    #: NAMESPACE/NAME of each.
    pods: tuple[str, ...] = ()
    #: All pods of it, ``None``: of all namespaces.
    namespace: str | None = None
    #: Only report which pods these are.
    dry_run: bool = False


@dataclass(slots=True)
class Done:
    """The result."""

    #: NAMESPACE/NAME of the pods.
    ungated: list[str] = field(default_factory=list)
    #: Number of pods that were deleted meanwhile.
    gone: int = 0
    #: A sentence for each pod that could not be ungated.
    refusals: list[str] = field(default_factory=list)
    #: By name of the scheduler that places them now, number of ungated pods.
    schedulers: Counter[str] = field(default_factory=Counter)
    #: Whether Muster's mutating webhook still exists and gates new pods.
    webhook_gates: bool = False
    #: Nothing was changed.
    dry_run: bool = False

    def figures(self) -> dict[str, object]:
        """Return the values that the command prints."""
        shown: dict[str, object] = {"would ungate": self.ungated} if self.dry_run else {}
        counts = {"ungated": 0 if self.dry_run else len(self.ungated)}
        counts |= {"gone": self.gone, "refused": len(self.refusals)}
        return {**shown, **counts, "schedulers": dict(self.schedulers)}


async def ungate(auth: Auth, choice: PodChoice) -> Done:
    """Lift the gates; raises ``KubeError`` where the pods cannot be listed."""
    done = Done(dry_run=choice.dry_run)
    async with KubeClient(auth) as client:
        done.webhook_gates = await _exists(client, "muster-webhook")
        for _ in range(_MAX_ROUNDS):
            found = await _gated(client, choice)
            if choice.dry_run:
                done.ungated = [_name(pod) for pod in found]
                break
            done.refusals.clear()  # those of the round before are tried again
            before = len(done.ungated) + done.gone
            await _lift_all(client, found, done)
            if len(done.ungated) + done.gone == before:
                break  # nothing left, or nothing but refusals
    return done


async def _gated(client: KubeClient, choice: PodChoice) -> list[Pod]:
    pods: Sequence[Pod]
    if choice.pods:
        pods = await asyncio.gather(*(client.get_pod(*name.split("/")) for name in choice.pods))
    else:
        pods = await client.list(PODS, namespace=choice.namespace, fieldSelector=_UNBOUND)
    return [pod for pod in pods if any(g.name == PLAN_GATE for g in pod.spec.scheduling_gates)]


async def _lift_all(client: KubeClient, pods: Sequence[Pod], done: Done) -> None:
    rest = iter(pods)

    async def worker() -> None:
        for pod in rest:  # shared: each worker takes the next one
            await _lift(client, pod, done)

    await asyncio.gather(*(worker() for _ in range(min(_IN_FLIGHT, len(pods)))))


async def _lift(client: KubeClient, pod: Pod, done: Done) -> None:
    """Lift the gate of the pod with this UID, not of a new pod with the same name."""
    gates = [{"name": PLAN_GATE, "$patch": "delete"}]
    body = {"metadata": {"uid": pod.metadata.uid}, "spec": {"schedulingGates": gates}}
    meta, encoded = pod.metadata, msgspec.json.encode(body)
    try:
        await client.patch(PODS, meta.name, encoded, namespace=meta.namespace)
    except NotFound:
        done.gone += 1
    except APIError as error:
        if isinstance(error, Invalid) and "metadata.uid" in error.fields:
            done.gone += 1
            return
        remedy = _REMEDY if "failed calling webhook" in str(error) else ""
        done.refusals.append(f"{_name(pod)}: {error}{remedy}")
    else:
        done.ungated.append(_name(pod))
        done.schedulers[pod.spec.scheduler_name] += 1


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


async def _exists(client: KubeClient, name: str) -> bool:
    try:
        await client.get(_MUTATING, name)
    except APIError:
        return False  # it does not exist, or may not be read
    return True
