"""Maps and lists of a pod that are made where a policy adds to them and the pod has none.

Upstream an ``add`` under a missing parent fails, and the workload is not propagated (Karmada keeps
it so, PR 3927, because a path with a typo would be made as well). Here only fields that a pod
knows are made, so that a typo still fails.
"""

from typing import Final

from muster.injection.patching.pointers import Path

_MAPS: Final = frozenset({
    "metadata.annotations", "metadata.labels", "spec", "metadata",
    "spec.nodeSelector", "spec.overhead", "spec.securityContext", "spec.dnsConfig", "spec.affinity",
    "spec.affinity.nodeAffinity", "spec.affinity.podAffinity", "spec.affinity.podAntiAffinity",
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    "spec.containers.*.resources", "spec.containers.*.resources.limits",
    "spec.containers.*.resources.requests", "spec.containers.*.securityContext",
    "spec.containers.*.securityContext.capabilities", "spec.containers.*.lifecycle",
})  # fmt: skip
_LISTS: Final = frozenset({
    "spec.tolerations", "spec.volumes", "spec.imagePullSecrets", "spec.hostAliases",
    "spec.initContainers", "spec.topologySpreadConstraints", "spec.resourceClaims",
    "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
    "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
    "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
    "spec.containers.*.env", "spec.containers.*.envFrom", "spec.containers.*.args",
    "spec.containers.*.command", "spec.containers.*.volumeMounts", "spec.containers.*.ports",
    "spec.containers.*.securityContext.capabilities.add",
    "spec.containers.*.securityContext.capabilities.drop",
})  # fmt: skip


def is_map(path: Path) -> bool:
    """Return whether the field at a path is a map or object that may be made empty."""
    return _pattern(path) in _MAPS


def is_list(path: Path) -> bool:
    """Return whether the field at a path is a list that may be made empty."""
    return _pattern(path) in _LISTS


def _pattern(path: Path) -> str:
    """Return a path with its container, of either list, left open."""
    match path:
        case ("spec", "containers" | "initContainers", _, *rest):
            return ".".join(("spec", "containers", "*", *rest))
        case _:
            return ".".join(path)


def name(root: object, path: Path) -> str:
    """Return how a person would call a field: ``containers[main].env[HOME]``."""
    words: list[str] = []
    node = root
    for depth, token in enumerate(path):
        inside = node
        node = _child(node, token)
        if isinstance(inside, list) and words:
            words[-1] += f"[{_title(node, token)}]"
        elif words and path[depth - 1] in _KEYED:
            words[-1] += f"[{token}]"
        elif depth or token not in ("metadata", "spec") or len(path) == 1:
            words.append(token)
    return ".".join(words)


_KEYED: Final = frozenset({"annotations", "labels", "nodeSelector", "limits", "requests"})


def _title(item: object, token: str) -> str:
    """Return the name of an item of a list, else where it is."""
    own = item.get("name") if isinstance(item, dict) else None
    return own if isinstance(own, str) else token


def _child(node: object, token: str) -> object:
    if isinstance(node, dict):
        return node.get(token)
    if isinstance(node, list) and token.isdigit() and int(token) < len(node):
        return node[int(token)]
    return None
