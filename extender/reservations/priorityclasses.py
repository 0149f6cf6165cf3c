"""What PriorityClasses say: their numbers, and which pods never give way.

*Numbers* are for pods that do not exist: a template names the class only. The API server writes the
number into a pod when it is created: of the class that is named, else of the one that is the
default, else 0 (kubernetes plugin/pkg/admission/priority).

*Never giving way* is YuniKorn's annotation on a class; one on the pod comes first (yunikorn-k8shim,
pkg/cache/task.go, ``isPreemptSelfAllowed``). The model has the numbers of pods and not their
classes, so all pods of that number are taken to be of that class.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from extender.engine import Clock
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.resources import Resource
from muster.kube.translation.firmmarks import YUNIKORN

log = logging.getLogger(__name__)

FRESH_S: Final = 60.0  # the number of a class cannot be changed, but classes come and go
PATIENCE_S: Final = 2.0  # for the list: the planner may wait for it


class PriorityClass(wire.Wire, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    value: int = 0
    global_default: bool = False


PRIORITY_CLASSES: Final = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", PriorityClass, namespaced=False
)


@dataclass(slots=True)
class PriorityClasses:
    """The classes as they were listed last."""

    client: KubeClient
    clock: Clock
    _known: dict[str, int] = field(default_factory=dict)
    _firm: frozenset[int] = frozenset()
    _default: int = 0
    _until: float = 0.0

    async def refresh(self) -> None:
        """List the classes again if that was a while ago; if it fails, what was known stays."""
        if self.clock() < self._until:
            return
        self._until = self.clock() + FRESH_S
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self.client.list(PRIORITY_CLASSES)
        except (KubeError, TimeoutError) as error:
            log.warning("priority classes not listed", extra={"error": str(error)})
            return
        self._known = {each.metadata.name: each.value for each in found}
        firm = (each for each in found if each.metadata.annotations.get(YUNIKORN) == "false")
        self._firm = frozenset(each.value for each in firm)
        self._default = max((each.value for each in found if each.global_default), default=0)

    def firm(self) -> frozenset[int]:
        """Return the numbers of the classes whose pods never give way (YuniKorn)."""
        return self._firm

    def of(self, spec: wire.PodSpec) -> int:
        """Return the priority that a pod of a template will have."""
        if spec.priority is not None:
            return spec.priority
        return self._known.get(spec.priority_class_name, self._default)
