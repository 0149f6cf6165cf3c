"""What of a pod's labels and annotations is its own, and what its siblings have, too."""

from collections.abc import Hashable, Mapping
from typing import Final

from kube import names, wire
from kube.selectors import PER_POD_LABELS

_OWN: Final = PER_POD_LABELS | {names.PLAN}
_OF_NETWORKS: Final = (
    "cni.projectcalico.org/",
    "k8s.ovn.org/",
    "k8s.v1.cni.cncf.io/",
    "ovn.kubernetes.io/",
)
"""Prefixes of annotations that network plugins write on each pod, with its addresses."""


def shared(meta: wire.ObjectMeta) -> Hashable:
    """Return what is read of a pod's metadata and is the same for all siblings.

    Names and times aside: who takes pods for siblings by this reads ranks and plans one by one.
    """
    return (
        meta.namespace,
        meta.owner_references,
        _left(meta.labels),
        _left(meta.annotations),
        frozenset(meta.labels.keys() & _OWN),
        frozenset(meta.annotations.keys() & _OWN),
    )


def _left(keys: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (key, keys[key]) for key in keys if key not in _OWN and not key.startswith(_OF_NETWORKS)
    )
