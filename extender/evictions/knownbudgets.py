"""The disruption budgets that the search for victims knows, read where it needs them.

::

    a set is found ─► budgets of its namespaces, read within FRESH_S? ─► they allow it: an order
                                                │ they do not
                                                └─► those of all namespaces, in one list ─► again

Most clusters have no budget for gangs that train, so nothing is watched for them: a watch would
hold every budget of the cluster, whose statuses change with each pod that gets ready. The evictor
reads budgets once more before anybody ends.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Sequence
from typing import Final

from extender.engine import Clock
from extender.evictions.budgets import BUDGETS, DisruptionBudget, budgets_in, name_of
from extender.timeslice import Pace
from muster.cluster.specs.podconstraints import LabelSelector
from muster.kube.client import KubeClient
from muster.kube.errors import Forbidden, KubeError
from muster.kube.translation.selectors import UnknownOperator, label_selector, uses_dropped_label
from muster.queueing.preemption.disruptionbudgets import DisruptionAllowance, NamespaceBudgets

log = logging.getLogger(__name__)

FRESH_S: Final = 5.0  # one look for promises is three times as long (backfill.refreshSeconds)
PATIENCE_S: Final = 2.0  # for one list: the planner waits for it
_EACH: Final = 64  # budgets that are translated without a pause: half a millisecond

_NONE: Final = NamespaceBudgets(())
_EVERYTHING: Final = LabelSelector(())


class KnownBudgets:
    """The budgets that were read lately."""

    def __init__(self, client: KubeClient, clock: Clock, pace: Pace) -> None:
        self._client, self._clock, self._pace = client, clock, pace
        #: by namespace
        self._known: dict[str, NamespaceBudgets] = {}
        #: until when those of a namespace count, and those of all (seconds since the epoch)
        self._until: dict[str, float] = {}
        self._all_until = 0.0

    def known(self) -> dict[str, NamespaceBudgets]:
        """Return the budgets that were read lately, by namespace."""
        now = self._clock()
        if now >= self._all_until:
            self._until = {name: until for name, until in self._until.items() if until > now}
            self._known = {name: self._known[name] for name in self._until}
        return dict(self._known)

    async def learn(self, namespaces: Collection[str]) -> bool:
        """Read the budgets of namespaces; returns whether any were not known.

        What cannot be read counts as none: the evictor finds it out.
        """
        now, known = self._clock(), self.known()
        if now < self._all_until:
            return False
        missing = sorted(set(namespaces) - set(known))
        for name in missing:
            found = await self._read(budgets_in(self._client, name), name)
            self._known[name] = NamespaceBudgets(map(_allowance, found)) if found else _NONE
            self._until[name] = now + FRESH_S
        return bool(missing)

    async def learn_all(self) -> bool:
        """Read the budgets of all namespaces in one list; returns whether any were not known."""
        now = self._clock()
        if now < self._all_until:
            return False
        found = await self._read(self._of_all(), "")
        by_namespace: dict[str, list[DisruptionAllowance]] = {}
        for number, budget in enumerate(found):
            by_namespace.setdefault(budget.metadata.namespace, []).append(_allowance(budget))
            if number % _EACH == _EACH - 1:
                await self._pace.breathe()
        if found:
            self._known = {name: NamespaceBudgets(of) for name, of in by_namespace.items()}
            self._until = dict.fromkeys(self._known, now + FRESH_S)
        self._all_until = now + FRESH_S
        return True

    async def _of_all(self) -> list[DisruptionBudget]:
        found: list[DisruptionBudget] = []
        try:
            async for page in self._client.pages(BUDGETS):
                if page.anew:
                    found.clear()
                found += page.items
                await self._pace.breathe()
        except Forbidden:
            return []
        return found

    async def _read(
        self, reading: Awaitable[Sequence[DisruptionBudget]], namespace: str
    ) -> Sequence[DisruptionBudget]:
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await reading
        except (KubeError, TimeoutError) as error:
            log.warning("budgets not read", extra={"namespace": namespace, "error": str(error)})
            return ()


def _allowance(budget: DisruptionBudget) -> DisruptionAllowance:
    return DisruptionAllowance(
        name_of(budget), _selector(budget), max(budget.status.disruptions_allowed, 0)
    )


def _selector(budget: DisruptionBudget) -> LabelSelector | None:
    """Return the selector of a budget; ``None``: it counts no pod that the model can name.

    Its selector has a label then that the model does not keep.

    One that cannot be read counts all, as in ``extender.evictions.budgets``.
    """
    try:
        found = label_selector(budget.spec.selector)
    except UnknownOperator:
        return _EVERYTHING
    return None if uses_dropped_label(found) else found
