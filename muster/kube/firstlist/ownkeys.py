"""The labels and annotations that each pod has of its own, and those that siblings share."""

from collections.abc import Hashable, Mapping
from typing import Final

from muster.kube import names, wire
from muster.kube.translation.selectors import PER_POD_LABELS

_OWN: Final = PER_POD_LABELS | {names.PLAN}
_OF_NETWORKS: Final = (
    "cni.projectcalico.org/",
    "k8s.ovn.org/",
    "k8s.v1.cni.cncf.io/",
    "ovn.kubernetes.io/",
)
"""Prefixes of annotations that network plugins write on each pod, with its addresses."""

_NONE: Final = wire.Affinity()


def shared(meta: wire.ObjectMeta) -> Hashable:
    """Return the part of a pod's metadata that is read and is the same for all siblings.

    Names and times are left out. Ranks and plans of siblings are read one by one.
    """
    return (
        meta.namespace,
        meta.owner_references,
        _left(meta.labels),
        _left(meta.annotations),
        frozenset(meta.labels.keys() & _OWN),
        frozenset(meta.annotations.keys() & _OWN),
    )


def select(pod: wire.Pod) -> bool:
    """Return whether a pod's constraints depend on its own labels, so no other pod has the same.

    Only true with API servers that leave ``matchLabelKeys`` to the scheduler (see
    ``muster.kube.translation.selectors.label_selector``).
    """
    affinity = pod.spec.affinity or _NONE
    both = affinity.pod_affinity, affinity.pod_anti_affinity
    terms = [term for one in both if one is not None for term in one.required]
    keys = {key for one in pod.spec.topology_spread_constraints for key in one.match_label_keys}
    keys |= {key for one in terms for key in (*one.match_label_keys, *one.mismatch_label_keys)}
    return not _OWN.isdisjoint(keys)


def is_own(key: str) -> bool:
    """Return whether each pod has its own value of a key."""
    return key in _OWN or key.startswith(_OF_NETWORKS)


def _left(keys: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((key, keys[key]) for key in keys if not is_own(key))
