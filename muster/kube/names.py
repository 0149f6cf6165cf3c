"""Names on the wire: labels, annotations and gates that Muster reads or writes.

Users write the first group on pods or pod templates, Muster writes the second.
"""

from typing import Final

PREFIX: Final = "muster.dev/"

# Written by users.
GANG: Final = PREFIX + "gang"  # label: the gang's name, unique in its namespace
GANG_SIZE: Final = PREFIX + "gang-size"  # members expected in all
GANG_MIN: Final = PREFIX + "gang-min"  # members placed together: a number or "75%"
TOPOLOGY_REQUIRED: Final = PREFIX + "topology-required"  # a level: its label key
TOPOLOGY_PREFERRED: Final = PREFIX + "topology-preferred"
TOPOLOGY_RELAX_AFTER: Final = PREFIX + "topology-relax-after"  # until then preferred is required
MAX_RUN_TIME: Final = PREFIX + "max-run-time"  # "90s", "1h30m": the gang runs no longer
SLICE_SIZE: Final = PREFIX + "slice-size"  # "8"; slices of slices: "32,8", the widest first
SLICE_TOPOLOGY: Final = PREFIX + "slice-topology"
SPARES: Final = PREFIX + "spares"  # hot spares: "2" or "5%", per slice where there are slices
SPARE_LEVEL: Final = PREFIX + "spare-level"  # the level that a spare shares with a member
REPAIR: Final = PREFIX + "repair"  # "wait" or "restart": a broken gang that finds no room near
QUEUE: Final = PREFIX + "queue"
ROLE: Final = PREFIX + "role"
FABRIC: Final = PREFIX + "fabric"
INJECT: Final = PREFIX + "inject"  # "false": nothing is injected; gate and profile stay
MOVABLE: Final = PREFIX + "movable"  # "false": no proposal ever moves the pod
SERVES: Final = PREFIX + "serves"  # "true": the pods serve requests; "false": they do not
FABRIC_OPTIONS: Final = PREFIX + "fabric-options"  # extras of the fabric, commas between them
GPU_TIER: Final = PREFIX + "gpu-tier"  # tier of accelerators by name
WORKLOAD: Final = PREFIX + "workload"  # kind of work, which stands for a tier
MIN_PARALLELISM: Final = PREFIX + "min-parallelism"  # pods that a suspended job may be resumed with
CAPACITY: Final = PREFIX + "capacity"  # "spot" or "on-demand"
DATASET: Final = PREFIX + "dataset-"  # and a name: a data set and where it is mounted
CHECKPOINTED_AT: Final = PREFIX + "checkpointed-at"  # RFC 3339, on a pod: the last checkpoint
MANAGED: Final = PREFIX + "managed"  # label on a namespace; "false": Muster stays out of it

# Written by Muster.
PLAN_GATE: Final = PREFIX + "plan"  # scheduling gate
PLAN: Final = PREFIX + "plan"  # annotation: the intent, one compact JSON
ORIGINAL_SCHEDULER: Final = PREFIX + "original-scheduler-name"  # annotation
INJECTED: Final = PREFIX + "injected"  # annotation: the ledger of what injection did
NCCL_CONF: Final = PREFIX + "nccl-conf"  # annotation: NCCL's settings, mounted as a file
NODE_TOPOLOGY: Final = PREFIX + "node-topology"  # annotation on nodes (device plugin)
NODE_ALLOCATIONS: Final = PREFIX + "node-allocations"  # annotation on nodes (device plugin)
DEVICES_HEALTHY: Final = PREFIX + "DevicesHealthy"  # condition of a bound gang member
SUSPENDED_BY: Final = PREFIX + "suspended-by"  # annotation on a job; its value is MUSTER
MUSTER: Final = "muster"
RESUMED_AT: Final = PREFIX + "resumed-at"  # annotation on a job: when Muster resumed it, RFC 3339
ASKED_PARALLELISM: Final = PREFIX + "asked-parallelism"  # annotation: before Muster lowered it
EVICTION: Final = PREFIX + "eviction"  # label, annotation: a pod of a gang that is being evicted
DRAIN: Final = PREFIX + "drain"  # taint on a node: gangs leave it; value: a deadline, epoch seconds
NOTICE: Final = "notice." + PREFIX  # and a condition's type: a taint that only the model has
LEADER: Final = PREFIX + "leader"  # label on the leading replica's pod; its value names the Lease
TERM: Final = PREFIX + "term"  # annotation on a replica's pod: the mark of its term

EXTENDER: Final = "muster-extender"  # the extender, as it writes statuses

# Who Muster is: the ServiceAccounts of the shipped manifests.
SERVICE_ACCOUNTS: Final = tuple(
    f"system:serviceaccount:muster-system:{name}" for name in ("muster-extender", "muster-webhook")
)

# Node label keys of the default topology, widest first; the host level is always last.
ZONE: Final = "topology.kubernetes.io/zone"
BLOCK: Final = PREFIX + "block"
RACK: Final = PREFIX + "rack"
HOST: Final = "kubernetes.io/hostname"
DEFAULT_LEVELS: Final = (ZONE, BLOCK, RACK, HOST)
