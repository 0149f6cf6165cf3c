"""Weights of Volcano's plugins ``nodeorder`` and ``binpack`` as Muster's section ``scoring``.

The keys are the same (``extender.config.settings.ScoringConfig``). A weight that is not given
counts as Volcano's default, so that nodes are preferred as before: free and balanced CPU and memory
count 1, and a plugin that is not listed counts 0. Without any weight, and without ``binpack``, the
administrator has chosen nothing: Muster's own order is kept.

Source of defaults: calculateWeight in nodeorder.go and binpack.go of volcano-sh/volcano.
"""

from collections.abc import Iterable, Mapping
from typing import Final

HIGHEST: Final = 1000  # of a weight in the extender's configuration
GPU: Final = "nvidia.com/gpu"
RESOURCES: Final = "binpack.resources"
OF_RESOURCE: Final = f"{RESOURCES}."
OF_GPU: Final = OF_RESOURCE + GPU

#: By plugin, the weights that Muster has, with Volcano's defaults.
DEFAULTS: Final[Mapping[str, Mapping[str, float]]] = {
    "nodeorder": {
        "gpuMemoryWeight": 0.0,
        "gpuComputeWeight": 0.0,
        "interGPUCommsWeight": 0.0,
        "mostrequested.weight": 0.0,
        "leastrequested.weight": 1.0,
        "balancedresource.weight": 1.0,
    },
    "binpack": {
        "binpack.weight": 1.0,
        "binpack.cpu": 1.0,
        "binpack.memory": 1.0,
        OF_GPU: 0.0,
    },
}
_WITHIN_BINPACK: Final = ("binpack.cpu", "binpack.memory", OF_GPU)

#: By plugin that counts, the weights that are given to it.
Given = Mapping[str, Mapping[str, float]]


def named_resources(text: str) -> list[str]:
    """Return the resources that ``binpack.resources`` names."""
    return [name.strip() for name in text.split(",") if name.strip()]


def section(given: Given) -> dict[str, object]:
    """Return the section, empty where Muster's own order is to be kept."""
    if "binpack" not in given and not given.get("nodeorder"):
        return {}
    weights: dict[str, float] = {}
    for plugin, defaults in DEFAULTS.items():
        mine = given.get(plugin)
        weights |= dict.fromkeys(defaults, 0.0) if mine is None else {**defaults, **mine}
    if not any(_shares(weights)):
        return {}
    return {"profile": "weighted", **{key: _short(value) for key, value in weights.items()}}


def defaults_taken(given: Given, plugin: str) -> dict[str, object]:
    """Return the weights of a plugin that the section has and that nobody gave."""
    return {
        key: _short(value)
        for key, value in DEFAULTS[plugin].items()
        if key not in given.get(plugin, {})
    }


def _shares(weights: Mapping[str, float]) -> Iterable[float]:
    return (value for key, value in weights.items() if key not in _WITHIN_BINPACK)


def _short(value: float) -> float | int:
    """Return a whole number without its point."""
    return int(value) if value.is_integer() else value
