"""Turns the pods of this node from wire objects into ``NodePod``, in the order they came.

The kubelet admits the pods of one batch of its watch by creation time, and batches as they come.
Our own watch cuts batches differently, so they are a guess. ``allocation.attribution`` corrects it
with the kubelet's list of pods that it knows.
"""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Final

from deviceplugin.allocation.values import ContainerAsk, NodePod, PodStage
from muster.kube import quantity, wire
from muster.kube.names import PLAN
from muster.kube.translation.planannotation import plan_note

_OVER: Final = ("Succeeded", "Failed")
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


def node_pod(pod: wire.Pod, node: str, batch: int, resources: Collection[str]) -> NodePod:
    """Return the pod as the table needs it; ``resources``: those that this plugin serves."""
    meta = pod.metadata
    text = meta.annotations.get(PLAN)
    note = plan_note(text) if text is not None else None
    plan = None if note is None else note.devices.get(node)
    return NodePod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        batch=batch,
        created=(meta.creation_timestamp or _EPOCH).timestamp(),
        containers=tuple(_asks(pod.spec, resources)),
        plan=plan,
        problem="cannot be read" if text is not None and note is None else "",
        life=_life(pod),
    )


def _asks(spec: wire.PodSpec, resources: Collection[str]) -> Iterator[ContainerAsk]:
    """Yield the containers in the kubelet's order."""
    for container in spec.init_containers:
        passes_on = container.restart_policy != "Always"  # else it is a side-car
        yield ContainerAsk(container.name, _amounts(container, resources), passes_on)
    for container in spec.containers:
        yield ContainerAsk(container.name, _amounts(container, resources))


def _amounts(container: wire.Container, resources: Collection[str]) -> dict[str, int]:
    """Return how much a container asks for: extended resources have requests equal to limits."""
    asked = container.resources.limits.items()
    return {name: quantity.to_units(value) for name, value in asked if name in resources}


def _life(pod: wire.Pod) -> PodStage:
    if pod.status.phase in _OVER:
        return PodStage.OVER
    if pod.metadata.deletion_timestamp is not None:
        return PodStage.ENDING
    return PodStage.RUNNING if pod.status.phase == "Running" else PodStage.WAITING
