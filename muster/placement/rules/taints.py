"""Taints and tolerations, per distinct taint set (core/v1 ``Toleration.ToleratesTaint``)."""

from collections.abc import Sequence

import numpy as np

from muster.cluster.specs.matching import untolerated
from muster.cluster.specs.podconstraints import Taint, Toleration
from muster.cluster.tables.nodeview import NodeView
from muster.placement.nodelabels import Mask


def taint_mask(nodes: NodeView, tolerations: Sequence[Toleration]) -> Mask:
    """Return bool[n]: the nodes whose every taint is tolerated."""
    sets = [() if taints is None else taints for taints in nodes.taint_sets]
    table = np.array([untolerated(tolerations, taints) is None for taints in sets] + [True])
    mask: Mask = table[nodes.taint_set]
    return mask


def commonest(nodes: NodeView, tolerations: Sequence[Toleration], removed: Mask) -> str:
    """Return the taint that keeps the pod away from most of ``removed``, as "key=value:Effect"."""
    counts = np.bincount(nodes.taint_set[removed & (nodes.taint_set >= 0)])
    if not len(counts):
        return ""
    taint = untolerated(tolerations, nodes.taint_sets[int(counts.argmax())])
    return "" if taint is None else text(taint)


def text(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
