"""Node selector requirements over label columns: evaluated per distinct value, then gathered.

A requirement becomes a truth table over the values of its key, one entry more for nodes
that lack the key; the code -1 of those finds it by wrapping around. Rules follow
upstream's ``labels.Requirement`` and ``nodeaffinity.NodeSelector``.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.specs.matching import holds
from muster.cluster.specs.podconstraints import NodeTerm, Operator, Requirement
from muster.cluster.tables.nodeview import NodeView

Mask = NDArray[np.bool_]

_NODE_NAME: Final = "metadata.name"


def requirement_mask(nodes: NodeView, requirement: Requirement) -> Mask:
    """Return bool[n]: the nodes whose labels meet one requirement."""
    column = nodes.labels(requirement.key)
    if column is None:
        return np.full(nodes.count, holds(requirement, None))
    table = np.zeros(len(column.values) + 1, dtype=np.bool_)
    if requirement.operator in (Operator.IN, Operator.NOT_IN):
        # By look-up: a key such as the host name has as many values as there are nodes.
        found = (column.values.find(value) for value in requirement.values)
        table[[code for code in found if code is not None]] = True
        if requirement.operator is Operator.NOT_IN:
            table = ~table
    else:
        table[:-1] = [holds(requirement, value) for value in column.values]
        table[-1] = holds(requirement, None)
    mask: Mask = table[column.codes]
    return mask


def _field_mask(nodes: NodeView, requirement: Requirement) -> Mask:
    """``matchFields``: upstream knows the node's name, with In and NotIn, and nothing else."""
    mask = np.zeros(nodes.count, dtype=np.bool_)
    if requirement.key != _NODE_NAME:
        return mask
    rows = (nodes.row(name) for name in requirement.values)
    mask[[row for row in rows if row is not None]] = True
    if requirement.operator is Operator.IN:
        return mask
    return ~mask if requirement.operator is Operator.NOT_IN else np.zeros_like(mask)


def term_mask(nodes: NodeView, term: NodeTerm) -> Mask:
    """Return bool[n] for one term: all its requirements; an empty term matches no node."""
    if not term.labels and not term.fields:
        return np.zeros(nodes.count, dtype=np.bool_)
    mask = np.ones(nodes.count, dtype=np.bool_)
    for requirement in term.labels:
        mask &= requirement_mask(nodes, requirement)
    for requirement in term.fields:
        mask &= _field_mask(nodes, requirement)
    return mask


def any_term_mask(nodes: NodeView, terms: Iterable[NodeTerm]) -> Mask:
    """Return bool[n]: the nodes that match at least one of the ORed terms."""
    mask = np.zeros(nodes.count, dtype=np.bool_)
    for term in terms:
        mask |= term_mask(nodes, term)
    return mask


def selector_mask(nodes: NodeView, pairs: Iterable[tuple[str, str]]) -> Mask:
    """Return bool[n] for a ``nodeSelector``: every pair must be there."""
    mask = np.ones(nodes.count, dtype=np.bool_)
    for key, value in pairs:
        mask &= requirement_mask(nodes, Requirement(key, Operator.IN, (value,)))
    return mask
