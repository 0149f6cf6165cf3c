"""Variables and launchers that programs of today no longer know, or will soon no longer know.

A variable that no program reads is worse than none: its author believes that it does something.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from muster.injection.checks.finding import PodFinding
from muster.injection.patching.containers import container_at
from muster.injection.podview import Container
from muster.injection.subject import Subject

_VARIABLES: Final[Mapping[str, str]] = {
    # NVIDIA NCCL user guide, Environment Variables: what it says was removed, renamed, deprecated.
    "NCCL_MIN_NRINGS": "gone since NCCL 2.5: NCCL_MIN_NCHANNELS",
    "NCCL_MAX_NRINGS": "gone since NCCL 2.5: NCCL_MAX_NCHANNELS",
    "NCCL_LL_THRESHOLD": "gone since NCCL 2.5: NCCL_PROTO",
    "NCCL_TREE_THRESHOLD": "gone since NCCL 2.5: NCCL_ALGO",
    "NCCL_SINGLE_RING_THRESHOLD": "gone since NCCL 2.3: leave it out",
    "NCCL_IB_CUDA_SUPPORT": "gone since NCCL 2.4: NCCL_NET_GDR_LEVEL",
    "NCCL_IB_GDR_LEVEL": "renamed in NCCL 2.4: NCCL_NET_GDR_LEVEL",
    "NCCL_CHECKS_DISABLE": "deprecated since NCCL 2.2: NCCL_CHECK_POINTERS",
    # PyTorch torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp: each with its older name.
    "NCCL_ASYNC_ERROR_HANDLING": "deprecated by PyTorch: TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT": "deprecated by PyTorch: TORCH_NCCL_BLOCKING_WAIT",
    "NCCL_DESYNC_DEBUG": "deprecated by PyTorch: TORCH_NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING": "deprecated by PyTorch: TORCH_NCCL_ENABLE_TIMING",
}
_LAUNCHER: Final = "torch.distributed.launch"  # its own docstring: in favor of torchrun


def deprecated(subject: Subject) -> Iterator[PodFinding]:
    """Yield the outdated names that accelerator containers use, with those of today."""
    for place in subject.accelerated:
        container = container_at(subject.pod, place)
        for text in _old(container):
            yield PodFinding(f"{place.within}[{container.name}]{text}")


def _old(container: Container) -> Iterator[str]:
    for env in container.env:
        if env.name in _VARIABLES:
            yield f".env[{env.name}]: {_VARIABLES[env.name]}"
    if any(_LAUNCHER in word for word in (*container.command, *container.args)):
        yield f": {_LAUNCHER} is deprecated: torchrun"
