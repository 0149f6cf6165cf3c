"""Checks that a claim has to pass between its quota and its start (Kueue's admission checks).

::

    quota ──► listed, Pending ──► controllers say ┬─ all Ready ──► admitted
                                                  ├─ Retry ──────► evicted; it may ask again
                                                  └─ Rejected ───► evicted and deactivated

Muster lists the checks, waits for what their controllers say, and does what follows. Retry and
Rejected count after admission, too. Source: kubernetes-sigs/kueue, at 0.14:
pkg/controller/core/workload_controller.go (``syncAdmissionCheckConditions``,
``reconcileCheckBasedEviction``), pkg/workload ``AdmissionChecksForWorkload``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from muster.cluster.claims import Grant, QuotaClaim

READY: Final = "Ready"
RETRY: Final = "Retry"
REJECTED: Final = "Rejected"


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A check that claims of a queue have to pass."""

    name: str
    #: Only claims that have one of these flavors; empty: all.
    flavors: tuple[str, ...] = ()


class CheckStep(Enum):
    """What is to be done about a claim that holds quota."""

    #: Its list of checks is not the one that it needs.
    LIST = "list"
    #: All are ready.
    ADMIT = "admit"
    #: One asks for another try.
    EVICT = "evict"
    #: One says no for ever.
    DEACTIVATE = "deactivate"


def needed(rules: Iterable[CheckRule], grant: Grant) -> tuple[str, ...]:
    """Return the names of the checks that a claim needs with what it holds, sorted."""
    taken = {flavor for part in grant.parts for flavor in part.flavors.values()}
    return tuple(
        sorted({rule.name for rule in rules if not rule.flavors or taken & set(rule.flavors)})
    )


def next_step(claim: QuotaClaim, rules: Iterable[CheckRule]) -> CheckStep | None:
    """Return what is to be done about a claim, ``None``: nothing before a controller speaks."""
    if claim.grant is None or claim.is_leaving or not claim.asks:
        return None
    names = needed(rules, claim.grant)
    states = {name: claim.checks[name] for name in names if name in claim.checks}
    if REJECTED in states.values():
        return CheckStep.DEACTIVATE
    if RETRY in states.values():
        return CheckStep.EVICT
    if claim.is_admitted:
        return None  # a check that came later does not stop what runs
    if set(claim.checks) != set(names):
        return CheckStep.LIST
    return CheckStep.ADMIT if all(state == READY for state in states.values()) else None
