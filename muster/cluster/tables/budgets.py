"""Budgets: caps on what a set of nodes may carry (pools, quotas, power limits)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import read_only
from muster.cluster.events import BudgetUpserted
from muster.cluster.specs.matching import holds
from muster.cluster.specs.podconstraints import Requirement
from muster.cluster.tables.nodeview import NodeView


@dataclass(frozen=True, slots=True, eq=False)
class BudgetView:
    """One budget at one generation."""

    #: Its name.
    name: str
    #: The most that pods may take, by resource.
    caps: Mapping[str, int]
    #: What pods on its nodes take, by resource.
    used: Mapping[str, int]
    #: bool[n]: the nodes that it covers.
    nodes: NDArray[np.bool_]


def selected(nodes: NodeView, requirements: Iterable[Requirement]) -> NDArray[np.bool_]:
    """Return bool[n]: living nodes with labels that meet every requirement.

    A requirement is evaluated once per label *value*; the column spreads the answer.
    """
    mask = nodes.alive
    for requirement in requirements:
        column = nodes.labels(requirement.key)
        if column is None:
            met = np.full(nodes.count, holds(requirement, None))
        else:
            answers = [value is not None and holds(requirement, value) for value in column.values]
            # The code of an absent label, -1, indexes the last entry.
            met = np.array([*answers, holds(requirement, None)])[column.codes]
        mask = mask & met
    return read_only(mask)


def view(budget: BudgetUpserted, nodes: NodeView) -> BudgetView:
    """Evaluate a budget over a snapshot's nodes."""
    mask = selected(nodes, budget.selector)
    used = {resource: int(nodes.used(resource)[mask].sum()) for resource in budget.caps}
    return BudgetView(budget.name, dict(budget.caps), used, mask)
