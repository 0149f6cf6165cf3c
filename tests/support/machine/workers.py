"""Which of several workers runs which test; only pytest-xdist's controller imports this.

What runs on real control planes goes by file and minor (the contract suite by its kind of plane),
so that each plane is started once; all other tests go one by one to whoever is free. The larger
units go first, and the small tests fill what is left of the time.

xdist's own ``--dist=loadgroup`` marks tests by writing to ``Item._nodeid``, which pytest 9.2 no
longer reads. The controller collects nothing: it has node ids, so these decide.
"""

import re

import pytest
from xdist.scheduler import LoadScopeScheduling

from loadtest.testbed.controlplane.assets import MINORS

_KIND = re.compile(rf"[\[-](simulated|{'|'.join(map(re.escape, MINORS))})(?=[]-])")


class ByControlPlane(LoadScopeScheduling):
    """One unit of work for all tests of a control plane, one for each other test."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, case = nodeid.partition("::")
        found = _KIND.search(case)
        kind = found[1] if found is not None else ""
        if file.startswith("tests/contract/"):
            return f"contract {kind}"
        return f"{file} {kind}" if file.startswith("tests/integration/") else nodeid


def make(config: pytest.Config, log: object) -> ByControlPlane:
    """Return the scheduler, as the hook ``pytest_xdist_make_scheduler`` must."""
    return ByControlPlane(config, log)
