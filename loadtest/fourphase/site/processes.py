"""CPU and memory of every process of a run, read from the kernel (Linux, proc(5))."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from loadtest.testbed.controlplane.procfs import resident_mib
from loadtest.testbed.controlplane.programs import Program, ProgramFailed
from loadtest.testbed.standins.simulated import Plane

DRIVER: Final = "load driver and observer"
_CPU: Final = "cpu_s "
_MEMORY: Final = "rss_mib "


def sample(plane: Plane, beside: Iterable[Program]) -> dict[str, float]:
    """Return one figure for each process and kind: CPU seconds so far, resident MiB.

    ``beside``: what runs beside the control plane.
    """
    figures = {_CPU + DRIVER: sum(os.times()[:2]), _MEMORY + DRIVER: resident_mib(os.getpid())}
    for name, program in _programs(plane, beside):
        try:
            figures |= {
                _CPU + name: program.cpu_seconds(),
                _MEMORY + name: resident_mib(program.pid),
            }
        except (ProgramFailed, FileNotFoundError, ProcessLookupError):
            continue  # it ended between two lines; the driver finds that out
    return figures


def names(columns: list[str]) -> list[str]:
    """Return the names of the processes that were sampled."""
    return [column.removeprefix(_CPU) for column in columns if column.startswith(_CPU)]


def cpu(name: str) -> str:
    """Return the column of a process's CPU seconds."""
    return _CPU + name


def memory(name: str) -> str:
    """Return the column of a process's resident memory in MiB."""
    return _MEMORY + name


def _programs(plane: Plane, beside: Iterable[Program]) -> Iterator[tuple[str, Program]]:
    running: Mapping[str, float] = plane.cpu_seconds()
    yield from ((name, plane.program(name)) for name in running)
    yield from ((each.name, each) for each in beside if each.running)
