"""Whether disruption budgets allow that all members of a gang end.

A budget allows some disruptions at a time; a gang ends whole. Where a budget would stop half-way,
nothing is begun. A budget that Muster may not read is found out at the first eviction.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from muster.cluster.specs.matching import selects
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.errors import Forbidden
from muster.kube.resources import Resource
from muster.kube.translation.selectors import UnknownOperator, label_selector
from muster.kube.wire import Pod

_UNHELD: Final = frozenset(("Pending", "Succeeded", "Failed"))
"""Phases of pods that no budget holds (pkg/registry/core/pod/storage/eviction.go)."""


class BudgetSpec(wire.Wire, frozen=True):
    """policy/v1 PodDisruptionBudgetSpec, as far as it is read."""

    selector: wire.LabelSelector | None = None


class BudgetStatus(wire.Wire, frozen=True):
    """policy/v1 PodDisruptionBudgetStatus, as far as it is read."""

    disruptions_allowed: int = 0


class DisruptionBudget(wire.Wire, frozen=True):
    """policy/v1 PodDisruptionBudget, as far as it is read."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)


BUDGETS: Final = Resource("policy", "v1", "poddisruptionbudgets", DisruptionBudget)


async def why_kept(client: KubeClient, namespace: str, pods: Sequence[Pod]) -> str:
    """Return which budget does not allow that pods of a namespace end, "" if all may.

    Raises ``KubeError`` where the API server does not answer.
    """
    budgets = await budgets_in(client, namespace)
    held = [pod for pod in pods if pod.status.phase not in _UNHELD]
    for budget in budgets:
        count = sum(_covers(budget, pod.metadata.labels) for pod in held)
        allowed = budget.status.disruptions_allowed
        if count > allowed:
            name = budget.metadata.name
            return f"disruption budget {name} allows {allowed} disruptions, {count} are needed"
    return ""


def _covers(budget: DisruptionBudget, labels: Mapping[str, str]) -> bool:
    """Return whether a budget is for a pod with these labels; one that cannot be read is."""
    if budget.spec.selector is None:
        return False
    try:
        return selects(label_selector(budget.spec.selector), labels)
    except UnknownOperator:
        return True


async def budgets_in(client: KubeClient, namespace: str) -> list[DisruptionBudget]:
    """Return the budgets of a namespace; none where they may not be read.

    Raises ``KubeError`` where the API server does not answer.
    """
    try:
        return list(await client.list(BUDGETS, namespace=namespace))
    except Forbidden:
        return []


def held_by(
    budgets: Sequence[DisruptionBudget], labels: Sequence[Mapping[str, str]]
) -> dict[str, int]:
    """Return how many pods with these labels each budget holds, by NAMESPACE/NAME."""
    found = {name_of(budget): sum(_covers(budget, of) for of in labels) for budget in budgets}
    return {name: count for name, count in found.items() if count}


def name_of(budget: DisruptionBudget) -> str:
    """Return NAMESPACE/NAME of a budget."""
    return f"{budget.metadata.namespace}/{budget.metadata.name}"
