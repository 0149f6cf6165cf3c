"""Disruption budgets as the search for victims sees them: how many of their pods may end now.

::

    namespace ns   budget keep   app=x, allows 1    ─► of gang g (app=x, 3 pods) one member at most
                   budget wide   all,   allows 8    ─► of g, h and i together eight pods

A namespace may have thousands of budgets, one for each gang. So each is found by one of the labels
that it asks for.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.cluster.specs.matching import selects
from muster.cluster.specs.podconstraints import LabelSelector, Operator


@dataclass(frozen=True, slots=True)
class DisruptionAllowance:
    """A PodDisruptionBudget (policy/v1) and what it allows now."""

    #: NAMESPACE/NAME.
    name: str
    #: Whose pods it counts; ``None``: nobody's, an empty one: all of its namespace.
    selector: LabelSelector | None
    #: Pods that may end now (``status.disruptionsAllowed``).
    allowed: int


class NamespaceBudgets:
    """The budgets of one namespace; they never change."""

    __slots__ = ("_by_label", "_others")

    def __init__(self, allowances: Iterable[DisruptionAllowance]) -> None:
        self._by_label: dict[tuple[str, str], list[DisruptionAllowance]] = {}
        #: those that ask for no value of a label
        self._others: list[DisruptionAllowance] = []
        for each in allowances:
            self._note(each)

    def _note(self, allowance: DisruptionAllowance) -> None:
        wanted = () if allowance.selector is None else allowance.selector.requirements
        first = next((one for one in wanted if one.operator is Operator.IN), None)
        if first is None:
            self._others.append(allowance)
            return
        for value in first.values:
            self._by_label.setdefault((first.key, value), []).append(allowance)

    def counting(self, labels: Mapping[str, str]) -> tuple[DisruptionAllowance, ...]:
        """Return the budgets that count a pod with these labels."""
        near = (each for label in labels.items() for each in self._by_label.get(label, ()))
        found = (each for each in (*near, *self._others) if selects(each.selector, labels))
        return tuple(found)
