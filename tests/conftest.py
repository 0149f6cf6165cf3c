"""What every test shares: the path of `support`, how deep hypothesis digs, and who runs what.

`MUSTER_HYPOTHESIS_PROFILE=deep` digs for hours' worth of bugs; the default is for
development. `ci`, for every push, draws the same each time: what is red is so because of a change.
"""

import atexit
import gc
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Read when gRPC is first imported. Its fork handlers end about every third child that is started
# by fork(2) while a call runs, before the child's own program begins.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# Go's collector would take a fifth of the time of a short-lived API server.
os.environ.setdefault("GOGC", "400")

# Hundreds of programs are started, and a third of their start is compiling: what they have
# compiled is kept, whatever is asked for outside.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

sys.path.insert(0, str(Path(__file__).parent))  # makes tests/support importable as `support`

from support.machine import collecting, secondchance
from support.machine.launcher import Launcher
from support.machine.patience import TEST_S

from loadtest.testbed.controlplane.programs import Program

sys.dont_write_bytecode = False  # likewise for the tests, which pytest compiles

_launcher = Program.launch = Launcher()
atexit.register(_launcher.close)

# Objects of 11,000 tests stay until the end, and among them the collector would find nothing: it
# takes a quarter of the time in which they are collected, and a tenth of a property test's.
gc.set_threshold(50_000, 20, 50)

# No deadline: tests do not time anything, and a crowded machine is not a failure.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=30, stateful_step_count=30, **_COMMON)
settings.register_profile(
    "ci", max_examples=30, stateful_step_count=40, derandomize=True, database=None, **_COMMON
)
# 2,000 runs of 60 steps, drawn anew each time: 120,000 steps of each state machine.
settings.register_profile("deep", max_examples=2000, stateful_step_count=60, **_COMMON)
settings.load_profile(os.environ.get("MUSTER_HYPOTHESIS_PROFILE", "fast"))

pytest_addoption = secondchance.pytest_addoption


def pytest_configure(config: pytest.Config) -> None:
    """Decide what a second chance is given to, and where a worker begins."""
    secondchance.pytest_configure(config)
    collecting.begin_elsewhere(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give tests on real programs time for several waits, unless one asks for an amount itself."""
    collecting.in_one_order(config, items)
    if config.getoption("timeout", None) is not None:
        return
    for item in items:
        if item.get_closest_marker("integration") and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_S))


def pytest_collection_finish() -> None:
    """Have no collection walk through the tests again."""
    gc.collect()
    gc.freeze()


# Tests wait for real programs, so there are more workers than cores.
_WORKERS_PER_CORE = 2
_MOST_WORKERS = 8
_BYTES_PER_WORKER = 2 * 1024**3  # of memory: three control planes, the largest with 10,000 pods


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return how many workers `-n auto` starts."""
    cores = os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fit = min(cores * _WORKERS_PER_CORE, _MOST_WORKERS, memory // _BYTES_PER_WORKER)
    return max(1, fit)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each worker what it needs the fewest control planes for."""
    from support.machine import workers  # noqa: PLC0415 - needs xdist, which may be switched off

    return workers.make(config, log)
