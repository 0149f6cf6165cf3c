"""Settings that work against the device plugin or against memory registration.

- ``CUDA_VISIBLE_DEVICES`` set by hand: the container already sees only its own devices, numbered
  from 0, so another pod's numbers hide them (NVIDIA/k8s-device-plugin README).
- ``IPC_LOCK`` on a container that does not run as root: the capability is not effective there, so
  ``ibv_reg_mr`` fails at the memlock limit and NCCL falls back to TCP in silence
  (NVIDIA/nvidia-container-toolkit#2037, kubernetes/kubernetes#3595).
"""

from collections.abc import Iterator
from typing import Final

from muster.injection.checks.finding import PodFinding
from muster.injection.patching.containers import container_at
from muster.injection.podview import Container
from muster.injection.subject import Subject

_VISIBLE: Final = frozenset({"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"})
LOCK: Final = "IPC_LOCK"


def devices(subject: Subject) -> Iterator[PodFinding]:
    """Yield what accelerator containers should not say."""
    for place in subject.accelerated:
        container = container_at(subject.pod, place)
        for name in (env.name for env in container.env if env.name in _VISIBLE):
            yield PodFinding(
                f"{place.within}[{container.name}].env[{name}] hides devices that the device "
                "plugin gave: leave it out"
            )
        if _locks(container) and not _is_root(container, subject):
            yield PodFinding(
                f"{place.within}[{container.name}]: {LOCK} has no effect unless it runs as root: "
                "RDMA may fall back to TCP at the memlock limit"
            )


def _locks(container: Container) -> bool:
    context = container.security_context
    return bool(context and context.capabilities and LOCK in context.capabilities.add)


def _is_root(container: Container, subject: Subject) -> bool:
    """Return whether it may run as root, as far as the pod says: an image's user is not known."""
    for context in (container.security_context, subject.pod.spec.security_context):
        if context is not None and context.run_as_user is not None:
            return context.run_as_user == 0
        if context is not None and context.run_as_non_root:
            return False
    return True
