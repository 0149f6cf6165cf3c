"""The trace's published variants, made again from its task list.

The published files vary one share at a time. What each name means was read off the files that
came with the trace::

    cpuNNN       CPU-only tasks, in percent of cpu100's number: 789 to 7,064 GPU tasks
    gpushareNN   percent of the demand for GPUs that comes from fractional tasks; the number of
                 GPU tasks stays
    multigpuNN   percent of the demand for GPUs that comes from tasks with several; more of
                 those are added
    gpuspecNN    percent of GPU tasks that name models, those of a constrained task of gpuspec20
                 of the same size

Tasks are drawn with replacement from the tasks of their kind, by a fixed seed: one name is one
list of tasks.
"""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from loadtest.traces.openb import OpenbError, Trace
from muster.placement.scoring.shape import Shape

CPU_TASKS: Final = 789 / 7064
"""CPU-only tasks per GPU task in openb_pod_list_cpu100.csv."""
CONSTRAINED_FILE: Final = "openb_pod_list_gpuspec20.csv"
"""Where the models that tasks name are drawn from, beside the trace."""
PUBLISHED: Final = (
    *(f"cpu{share:03}" for share in (50, 100, 200, 250)),
    *(f"gpushare{share}" for share in (40, 60, 80, 100)),
    *(f"multigpu{share}" for share in (20, 30, 40, 50)),
    *(f"gpuspec{share}" for share in (10, 20, 25, 33)),
)
_NAME: Final = re.compile(r"(cpu|gpushare|multigpu|gpuspec)(\d{1,3})")
_SEED: Final = 42

Tasks = Sequence[Shape]


def variant(trace: Trace, name: str, constrained: Tasks = ()) -> Trace:
    """Return a trace with the tasks of variant ``name`` and the same machines.

    ``constrained``: tasks whose models gpuspec variants draw. Raises ``OpenbError`` for a name
    or share that is none, and for a gpuspec variant without constrained tasks.
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise OpenbError(
            f"--variant {name}: allowed: cpu, gpushare, multigpu or gpuspec and a percentage, "
            f"such as {', '.join(PUBLISHED[::4])}"
        )
    kind, percent = found[1], int(found[2])
    most = {"cpu": 999, "multigpu": 99}.get(kind, 100)
    if percent > most:
        raise OpenbError(f"--variant {name}: {percent} per cent; allowed: 0 to {most}")
    draw = random.Random(_SEED)
    match kind:
        case "cpu":
            tasks = _cpu(draw, trace.tasks, percent / 100)
        case "gpushare":
            tasks = _fractional(draw, trace.tasks, percent / 100)
        case "multigpu":
            tasks = _several(draw, trace.tasks, percent / 100)
        case _:
            tasks = _picky(draw, trace.tasks, percent / 100, constrained)
    known: dict[Shape, Shape] = {}  # one object per shape, as in a trace that was read
    return replace(trace, tasks=tuple(known.setdefault(task, task) for task in tasks))


def _cpu(draw: random.Random, tasks: Tasks, share: float) -> list[Shape]:
    gpu = [task for task in tasks if task.devices]
    others = [task for task in tasks if not task.devices]
    return gpu + draw.choices(others, k=round(share * CPU_TASKS * len(gpu)))


def _fractional(draw: random.Random, tasks: Tasks, share: float) -> list[Shape]:
    parts = [task for task in tasks if task.fractional]
    whole = [task for task in tasks if task.devices and not task.fractional]
    total = len(parts) + len(whole)
    weight = share * _mean(whole)
    number = round(total * weight / (weight + (1 - share) * _mean(parts)))
    drawn = draw.choices(parts, k=number) + draw.choices(whole, k=total - number)
    return drawn + [task for task in tasks if not task.devices]


def _several(draw: random.Random, tasks: Tasks, share: float) -> list[Shape]:
    several = [task for task in tasks if task.devices > 1]
    others = [task for task in tasks if task.devices <= 1]
    demand = sum(task.gpu for task in others) * share / (1 - share)
    return others + draw.choices(several, k=round(demand / _mean(several)))


def _picky(draw: random.Random, tasks: Tasks, share: float, constrained: Tasks) -> list[Shape]:
    models: dict[int, list[frozenset[str]]] = defaultdict(list)
    for task in constrained:
        if task.models:
            models[task.gpu].append(task.models)
    able = [number for number, task in enumerate(tasks) if task.gpu in models]
    wanted = round(share * sum(1 for task in tasks if task.devices))
    if len(able) < wanted:
        raise OpenbError(
            f"--variant gpuspec{share * 100:.0f}: models are drawn from {CONSTRAINED_FILE} "
            "beside the trace, and there are not enough tasks of the sizes that name some in it"
        )
    found = list(tasks)
    for number in draw.sample(able, wanted):
        found[number] = replace(found[number], models=draw.choice(models[found[number].gpu]))
    return found


def _mean(tasks: Tasks) -> float:
    return sum(task.gpu for task in tasks) / len(tasks)
