"""What is measured: the benches at a small, fixed size, a process of its own for each.

Its own process: memory is counted from an empty heap, no other bench's objects or threads are in
the way, and one that breaks down says so without ending the others.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from loadtest.gate.judge import Measured
from loadtest.testbed.controlplane.programs import die_with_parent

# A few times what the slowest takes when other work has the machine too.
_LONGEST_S: Final = 420.0
_TAIL: Final = 2000  # characters of what a broken probe said


class ProbeFailed(Exception):
    """A probe broke down or measured nothing; the message has what it said last."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One measurement that gives several ``ratios``."""

    ratios: tuple[str, ...]
    measure: Callable[[], Mapping[str, Measured]]


def in_own_process(name: str) -> dict[str, Measured]:
    """Run a probe as a program; raises ``ProbeFailed``."""
    command = [sys.executable, "-m", "loadtest.gate", name]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_LONGEST_S,
            preexec_fn=die_with_parent(),  # one prctl(2), nothing that locks
        )
    except subprocess.TimeoutExpired as late:
        raise ProbeFailed(
            f"{name}: not done after {_LONGEST_S:.0f} s: try an idler machine"
        ) from late
    if done.returncode:
        raise ProbeFailed(f"{name}: ended with {done.returncode}\n{done.stderr[-_TAIL:].strip()}")
    found = {ratio: Measured(*sides) for ratio, sides in json.loads(done.stdout).items()}
    if set(found) != set(PROBES[name].ratios):
        raise ProbeFailed(f"{name}: measured {', '.join(found)}, not {PROBES[name].ratios}")
    return found


# --- the probes. Each imports what it needs alone: what it does not load is not in its memory -----


def _planning() -> dict[str, Measured]:
    """Plan gangs of 512 on 8,192 nodes: of equal pods, of several kinds, in slices."""
    from loadtest.benches import plan  # noqa: PLC0415  lazy, as the other benches

    shapes = {
        "plan": plan.Shape(512),
        "plan-mixed": plan.Shape(512, mixed=True),
        "plan-sliced": plan.Shape(512, slice_size=8),
    }
    found = {name: plan.run(8192, shape, rounds=40) for name, shape in shapes.items()}
    return {name: Measured(each["cpu_ms"], each["pass_cpu_ms"]) for name, each in found.items()}


def _model() -> dict[str, Measured]:
    """Build a model of 8,192 nodes with 80,000 pods."""
    from loadtest.benches import model  # noqa: PLC0415  lazy

    found = model.run(8192, 80_000)
    return {"memory": Measured(found["rss_mib"] - found["rss_before_mib"], found["array_mib"])}


def _filter() -> dict[str, Measured]:
    """Ask as kube-scheduler does for a pod that is pinned: one node name, a plan hit."""
    from loadtest.benches import filterverb  # noqa: PLC0415  lazy

    found = filterverb.run(1, while_planning=False, calls=1500)
    return {
        "filter-cpu": _divided(found, "cpu_us_per_filter", "cpu_us_per_echo"),
        "filter-p50": _divided(found, "filter_p50_ms", "echo_p50_ms"),
    }


def _webhook() -> dict[str, Measured]:
    """Review the pods of one job, and pods that are all different."""
    from loadtest.benches import webhook  # noqa: PLC0415  lazy

    def cost(*, alone: bool) -> Measured:
        found = webhook.run(
            webhook.Settings(
                connections=1,  # requests that come together are cheaper, and how many do varies
                rate=50,
                rounds=5,
                seconds=0.5,
                alone=alone,
                slow_clients=0,
                rotations=0,
            )
        )
        return _divided(found, "cpu_us_per_review", "cpu_us_per_echo")

    asked = webhook.run_callers(webhook.Settings(connections=1, rounds=11, seconds=0.5))
    return {
        "review": cost(alone=False),
        "review-alone": cost(alone=True),
        "review-callers": _divided(asked, "cpu_us_per_review", "cpu_us_unasked"),
    }


def _device_plugin() -> dict[str, Measured]:
    """Ask for devices on a node of 8 GPUs."""
    from loadtest.benches import device_plugin  # noqa: PLC0415  lazy

    found = device_plugin.run(device_plugin.Settings(devices=8, calls=1000, idle_seconds=0.1))
    return {
        "preferred": _divided(found, "cpu_us_per_preferred", "cpu_us_per_noop"),
    }


def _scheduling() -> dict[str, Measured]:
    """Bind 2 gangs of 128 on 1,000 nodes of a real control plane, both sides in turn."""
    from loadtest.benches import throughput  # noqa: PLC0415  lazy

    settings = throughput.Settings(nodes=1000, gangs=2, size=128, rounds=2)
    found, pods = throughput.run(settings), settings.gangs * settings.size
    ours, bare = (_milliseconds(found[key], pods) for key in ("muster_cpu_s", "bare_cpu_s"))
    return {
        "muster-cpu": Measured(ours["extender"] + ours["webhook"], bare["kube-scheduler"]),
        "all-cpu": Measured(_all(ours), _all(bare)),
        # The sides of these two are of the same seconds: steadier than those of two turns.
        "muster-share": Measured(ours["extender"] + ours["webhook"], _server(ours)),
        "scheduler-share": Measured(ours["kube-scheduler"], _server(ours)),
    }


def _milliseconds(found: object, pods: int) -> dict[str, float]:
    """Return milliseconds per pod of each program."""
    if not isinstance(found, Mapping):
        raise TypeError(f"CPU seconds by program are a mapping, not {found!r}")
    return {str(program): float(seconds) / pods * 1000 for program, seconds in found.items()}


def _all(found: Mapping[str, float]) -> float:
    """Return what everything but the load itself took."""
    return sum(spent for program, spent in found.items() if program != "driver")


def _server(found: Mapping[str, float]) -> float:
    """Return what storing and serving objects took."""
    return found["kube-apiserver"] + found["etcd"]


def _divided(found: Mapping[str, object], above: str, below: str) -> Measured:
    return Measured(float(str(found[above])), float(str(found[below])))


PROBES: Final[Mapping[str, Probe]] = {
    "planning": Probe(("plan", "plan-mixed", "plan-sliced"), _planning),
    "model": Probe(("memory",), _model),
    "filter": Probe(("filter-cpu", "filter-p50"), _filter),
    "webhook": Probe(("review", "review-alone", "review-callers"), _webhook),
    "device-plugin": Probe(("preferred",), _device_plugin),
    "scheduling": Probe(("muster-cpu", "all-cpu", "muster-share", "scheduler-share"), _scheduling),
}
"""By name, the quickest first."""
