"""Actions, plugins, switches and arguments of Volcano, and what Muster does instead.

Sources: pkg/scheduler/actions and pkg/scheduler/plugins of volcano-sh/volcano for the names,
docs/queues.md and docs/install/volcano.md for what Muster does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

NOTHING_ALIKE: Final = "not used: Muster has nothing like it"
_SPARED: Final = "always done: gangs of the system never give way"
_LEVELS: Final = "always done: networkTopology is obeyed, by levels of node labels (levels)"
_PROMISED: Final = "not used: the first gang that does not fit is promised a start (backfill)"

ACTIONS: Final[Mapping[str, str]] = {
    "enqueue": "always done: a gang is admitted when its queue has room for its minimum",
    "allocate": "always done: the members of a gang are planned together",
    "backfill": (
        "always done: pods without requests are planned like others. Muster's own section "
        "backfill, on by default, is about gangs that go before one that waits"
    ),
    "preempt": "in makingRoom: gangs give way to a higher priority of their queue",
    "reclaim": "in makingRoom: gangs of queues that use more than they deserve give way to others",
    "shuffle": "not used: no running pod is moved by itself; muster defrag names moves",
    "elect": _PROMISED,
    "reserve": _PROMISED,
}


EVICTING: Final = ("preempt", "reclaim")
"""Actions that are settings of Muster's own."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What an argument may be."""

    #: What a value must match in full.
    pattern: re.Pattern[str]
    #: The same in words.
    words: str


NUMBER: Final = Kind(re.compile(r"\+?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?"), "a number from 0")
SWITCH: Final = Kind(re.compile(r"(?i:true|false|yes|no|on|off|y|n)"), "true or false")
TEXT: Final = Kind(re.compile(r"(?s:.*)"), "a text")


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that Muster does not use."""

    #: What it may be.
    kind: Kind
    #: What Muster does instead.
    why: str


@dataclass(frozen=True, slots=True)
class VolcanoPlugin:
    """A plugin of Volcano."""

    #: What Muster does; "" for plugins whose arguments are translated.
    why: str
    #: Arguments that are not used.
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    #: Whether every argument is known, as none of them means anything to Muster.
    takes_any: bool = False


def _scheduler_weighs(what: str) -> Argument:
    return Argument(NUMBER, f"not used: {what}")


_NODEORDER: Final = {
    "nodeaffinity.weight": _scheduler_weighs(
        "preferred node affinity decides between places that are equal otherwise"
    ),
    "podaffinity.weight": _scheduler_weighs("preferred pod affinity is not in the plan"),
    "tainttoleration.weight": _scheduler_weighs(
        "taints with PreferNoSchedule decide between places that are equal otherwise"
    ),
    "imagelocality.weight": _scheduler_weighs("the images of nodes are not in the plan"),
    "podtopologyspread.weight": _scheduler_weighs("preferred spread is not in the plan"),
    "selectorspread.weight": _scheduler_weighs("preferred spread is not in the plan"),
}
_FILTERED: Final = Argument(SWITCH, "not used: kube-scheduler's own configuration has its filters")
_PREDICATES: Final = {
    f"predicate.{name}Enable": _FILTERED
    for name in (
        *("NodeAffinity", "NodePorts", "TaintToleration", "PodAffinity", "NodeVolumeLimits"),
        *("VolumeZone", "PodTopologySpread", "VolumeBinding", "DynamicResourceAllocation"),
        *("Cache", "Proportional", "GPUSharing", "GPUNumber"),
    )
} | {
    f"predicate.resources{end}": Argument(TEXT, NOTHING_ALIKE)
    for end in ("", ".nvidia.com/gpu.cpu", ".nvidia.com/gpu.memory")
}
_FACTOR: Final = Argument(NUMBER, "not used: gangs are admitted by what their queue has left")

PLUGINS: Final[Mapping[str, VolcanoPlugin]] = {
    "priority": VolcanoPlugin(
        "always done: gangs go by priority where shares of queues do not decide"
    ),
    "gang": VolcanoPlugin("always done: a gang starts with its minimum, or not at all"),
    "conformance": VolcanoPlugin(_SPARED),
    "drf": VolcanoPlugin(
        "always done for queues: the lesser share goes first; within a queue gangs go by priority "
        "and age"
    ),
    "predicates": VolcanoPlugin(
        "always done: the plan has the filters, and kube-scheduler checks each node", _PREDICATES
    ),
    "nodeorder": VolcanoPlugin("", _NODEORDER),
    "binpack": VolcanoPlugin(""),
    "proportion": VolcanoPlugin("always done: weight and capability of Queue objects are obeyed"),
    "capacity": VolcanoPlugin(
        "always done: deserved, guarantee and capability of Queue objects are obeyed"
    ),
    "overcommit": VolcanoPlugin(_FACTOR.why, {"overcommit-factor": _FACTOR}),
    "sla": VolcanoPlugin(_PROMISED, {"sla-waiting-time": Argument(TEXT, _PROMISED)}),
    "cdp": VolcanoPlugin(
        "always done where gangs give way: they run for their volcano.sh/cooldown-time first"
    ),
    "network-topology-aware": VolcanoPlugin(_LEVELS, takes_any=True),
} | dict.fromkeys(
    (
        *("deviceshare", "extender", "nodegroup", "numaaware", "pdb", "rescheduling"),
        *("resource-strategy-fit", "resourcequota", "task-topology", "tdm", "usage"),
    ),
    VolcanoPlugin(NOTHING_ALIKE, takes_any=True),
)

NODE_ORDER: Final = "enableNodeOrder"
SWITCHES: Final = (
    *("enableJobOrder", "enableNamespaceOrder", "enableHierarchy", "enableJobReady"),
    *("enableJobPipelined", "enableTaskOrder", "enablePreemptable", "enableReclaimable"),
    *("enablePreemptive", "enableQueueOrder", "EnabledClusterOrder", "enableClusterOrder"),
    *("enablePredicate", "enableBestNode", NODE_ORDER, "enableTargetJob", "enableReservedNodes"),
    *("enableJobEnqueued", "enabledVictim", "enableJobStarving", "enabledOverused"),
    *("enabledAllocatable", "enableHyperNodeOrder"),
)


def is_false(text: str | None) -> bool:
    """Return whether a switch is off, as YAML 1.1 writes it."""
    return (text or "").lower() in ("false", "no", "off", "n")
