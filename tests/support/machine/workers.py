"""Which of several workers runs which test; only pytest-xdist's controller imports this.

What runs on real control planes goes by file and minor (the contract suite by its kind of plane),
so that each plane is started once; all other tests go one by one to whoever is free. What takes
minutes goes first, then the units of many tests, and the small tests fill what is left of the time.

xdist's own ``--dist=loadgroup`` marks tests by writing to ``Item._nodeid``, which pytest 9.2 no
longer reads. The controller collects nothing: it has node ids, so these decide.
"""

import re
from collections.abc import Iterable
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from loadtest.testbed.controlplane.assets import MINORS

_KIND = re.compile(rf"[\[-](simulated|{'|'.join(map(re.escape, MINORS))})(?=[]-])")


# By the start of their node ids, the longest first.
_LONGEST: Final = (
    "tests/integration/webhook/test_policies_real.py",
    "tests/contract/",
    "tests/property/cluster/test_cluster_state.py",
    "tests/integration/placement/test_main_path.py",
    "tests/integration/faults/",
    "tests/integration/deviceplugin/",
    "tests/integration/",
    "tests/scenarios/loadtest/",
    "tests/property/extender/test_chaos.py",
    "tests/property/",
    "tests/scenarios/",
)


class ByControlPlane(LoadScopeScheduling):
    """One unit of work for all tests of a control plane, one for each other test."""

    _long: list[str] | None = None
    """Units that are to go before the others and have not gone yet, the next one last."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self._long is None:
            self._long = longest(self.workqueue)
        while self._long:
            unit = self._long.pop()
            if unit in self.workqueue:
                self.workqueue.move_to_end(unit, last=False)
                break
        super()._assign_work_unit(node)

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Forget a unit that is done: xdist counts through all of a worker after each test."""
        super().mark_test_complete(node, item_index, duration)
        units = self.assigned_work[node]
        unit = self._split_scope(self.registered_collections[node][item_index])
        if all(units[unit].values()):
            del units[unit]

    def _split_scope(self, nodeid: str) -> str:
        file, _, case = nodeid.partition("::")
        found = _KIND.search(case)
        kind = found[1] if found is not None else ""
        if file.startswith("tests/contract/"):
            return f"tests/contract/ {kind}"
        return f"{file} {kind}" if file.startswith("tests/integration/") else nodeid


def longest(units: Iterable[str]) -> list[str]:
    """Return the units that are to go before the others, the longest last.

    Those that are alike stay as they come: the one with the most tests first.
    """
    ranks = {unit: _rank(unit) for unit in units}
    return sorted((unit for unit, rank in ranks.items() if rank < len(_LONGEST)), key=ranks.get)[
        ::-1
    ]


def _rank(unit: str) -> int:
    return next((i for i, start in enumerate(_LONGEST) if unit.startswith(start)), len(_LONGEST))


def make(config: pytest.Config, log: object) -> ByControlPlane:
    """Return the scheduler, as the hook ``pytest_xdist_make_scheduler`` must."""
    return ByControlPlane(config, log)
