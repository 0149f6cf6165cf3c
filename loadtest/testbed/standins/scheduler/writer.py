"""What the scheduler writes: bindings, conditions, nominations, evictions, events."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol

from loadtest.testbed.client.api import STRATEGIC_PATCH, ApiFailed
from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.scheduler.objects import PodInfo

_NOTE_LIMIT: Final = 1_024  # bytes of an event's note (events/v1 validation)


class Writes(Protocol):
    """What is needed of ``Api``."""

    async def create(self, path: str, obj: JsonObject) -> JsonObject:
        """See ``Api``."""
        ...

    async def patch(self, path: str, change: JsonObject, *, kind: str) -> JsonObject:
        """See ``Api``."""
        ...

    async def delete(self, path: str, *, grace_s: int | None = 0) -> JsonObject:
        """See ``Api``."""
        ...


class Writer:
    """Writes of one scheduler, named ``component``."""

    def __init__(self, api: Writes, component: str, clock: Callable[[], float] = time.time) -> None:
        self._api, self._component, self._clock = api, component, clock

    async def bind(self, pod: PodInfo, node: str) -> None:
        """POST the Binding, as DefaultBinder does."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        await self._api.create(f"{_path(pod)}/binding", body)

    async def report(self, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        """Patch PodScheduled=False when it would change, and the nomination when one is given."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
        }
        status: JsonObject = {}
        if not _says(pod, condition):
            status["conditions"] = [{**condition, "lastTransitionTime": self._now()}]
        if nominated is not None and nominated != pod.nominated:
            status["nominatedNodeName"] = nominated
        if status:
            await self._patch_status(pod, status)

    async def evict(self, victim: PodInfo, preemptor: PodInfo) -> None:
        """Mark a victim as disrupted and delete it."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{self._component}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": self._now(),
        }
        await self._patch_status(victim, {"conditions": [condition]})
        try:
            await self._api.delete(_path(victim), grace_s=None)
        except ApiFailed as failure:
            if failure.code != 404:
                raise
        await self.event(victim, "Normal", "Preempted", f"Preempted by pod {preemptor.uid}")

    async def event(self, pod: PodInfo, kind: str, reason: str, note: str) -> None:
        """Create an event about the pod."""
        event = {
            "metadata": {"generateName": f"{pod.name}.", "namespace": pod.namespace},
            "eventTime": self._moment().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": self._component,
            "reportingInstance": f"{self._component}-stand-in",
            "action": "Binding" if reason == "Scheduled" else "Scheduling",
            "reason": reason,
            "type": kind,
            "note": note[:_NOTE_LIMIT],
            "regarding": {
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
                "apiVersion": "v1",
            },
        }
        await self._api.create(f"/apis/events.k8s.io/v1/namespaces/{pod.namespace}/events", event)

    def _moment(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    def _now(self) -> str:
        return self._moment().strftime("%Y-%m-%dT%H:%M:%SZ")

    async def _patch_status(self, pod: PodInfo, status: JsonObject) -> None:
        patch = {"metadata": {"uid": pod.uid}, "status": status}
        try:
            await self._api.patch(f"{_path(pod)}/status", patch, kind=STRATEGIC_PATCH)
        except ApiFailed as failure:
            if failure.code not in (404, 409, 422):  # the pod is gone or another one by now
                raise


def _path(pod: PodInfo) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _says(pod: PodInfo, condition: JsonObject) -> bool:
    """Return whether the pod carries the condition already, times aside."""
    for present in pod.raw["status"].get("conditions") or []:
        if present.get("type") == condition["type"]:
            return all(present.get(key) == value for key, value in condition.items())
    return False
