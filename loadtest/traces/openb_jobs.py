"""The tasks of the openb trace as jobs over time: one pod each, with its CPU, memory and GPUs.

A task that shares a GPU asks for a whole one here and is counted as ``rounded``; one that never
ran has no run time and is left out.
"""

import csv
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loadtest.traces.trace import Job, Trace, TraceError

_COLUMNS = (
    "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time",
    "deletion_time", "scheduled_time",
)  # fmt: skip
_WHOLE = 1000  # thousandths of a GPU


@dataclass(frozen=True, slots=True)
class Task(Job):
    """One pod."""

    millicpu: int = 0
    memory_mib: int = 0
    #: GPU models it may use, none for any.
    models: tuple[str, ...] = ()
    #: Whether it asked for a part of a GPU, and asks for a whole one here.
    rounded: bool = False

    @property
    def gpus_per_pod(self) -> int:
        """All of them."""
        return self.gpus

    @property
    def pods(self) -> int:
        """One."""
        return 1


def read_tasks(path: Path, jobs: int, *, seed: int = 0) -> Trace:
    """Read a window of ``jobs`` consecutive tasks that ran; 0: all. Raises ``TraceError``."""
    tasks = sorted(_tasks(path), key=lambda task: (task.arrival, task.name))
    if not tasks:
        raise TraceError(f"{path}: holds no task that ran")
    count = min(jobs or len(tasks), len(tasks))
    first = random.Random(seed).randrange(len(tasks) - count + 1)
    return Trace(f"{path.name}: a real trace", tuple(tasks[first : first + count]))


def _tasks(path: Path) -> list[Task]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = enumerate(csv.DictReader(file), start=2)
            return [_task(path, line, row) for line, row in rows if row.get("scheduled_time") != ""]
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error


def _task(path: Path, line: int, row: Mapping[str, str | None]) -> Task:
    try:
        cells = {column: row[column] or "" for column in _COLUMNS}
        scheduled, deleted = float(cells["scheduled_time"]), float(cells["deletion_time"])
        gpus = int(cells["num_gpu"])
        return Task(
            name=f"task-{line:05d}",
            tenant="",
            gpus=gpus,
            arrival=float(cells["creation_time"]),
            duration=max(deleted - scheduled, 1.0),
            millicpu=int(cells["cpu_milli"]),
            memory_mib=int(cells["memory_mib"]),
            models=tuple(filter(None, cells["gpu_spec"].split("|"))),
            rounded=gpus == 1 and int(cells["gpu_milli"]) < _WHOLE,
        )
    except (KeyError, ValueError) as error:
        raise TraceError(f"{path}: line {line}: want {', '.join(_COLUMNS)}: {error!r}") from error
