"""The extender's configuration file: versioned YAML, every field checked on load.

Without the checks, a misspelt field or an unknown topology level would show only as gangs that wait
forever without a reason. So unknown fields are rejected, and every message names the file, the
field, the value and what is allowed.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

import msgspec

from extender.config import backfill as backfillconfig
from extender.config import callers as callersconfig
from extender.config import draining as drainingconfig
from extender.config import election, queuefiles
from extender.config import makingroom as makingroomconfig
from extender.config import queueing as queueingconfig
from extender.config.backfill import BackfillConfig
from extender.config.callers import CallersSettings
from extender.config.draining import DrainingConfig
from extender.config.election import LeaderElection
from extender.config.makingroom import MakingRoomConfig
from extender.config.queuefiles import YuniKornQueuesConfig
from extender.config.queueing import QueueingConfig
from muster.kube import names
from muster.kube.kinds.provisioning import BEST_EFFORT_ATOMIC, CHECK_CAPACITY
from muster.observability import configfile
from muster.placement.reasons.missingnodes import NodeNeed
from muster.placement.scoring.profiles import Profile, Scoring, Weights
from muster.workloads.managedpods import ManagedConfig, ManagedPolicy

API_VERSION: Final = "muster.dev/v1alpha1"
KIND: Final = "ExtenderConfiguration"
MIB: Final = 1024 * 1024
LONGEST_NAME_BYTES: Final = 256  # a DNS subdomain of 253 characters, quotes and a comma
_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CLASS_NAME: Final = re.compile(rf"{_PART}(\.{_PART})*")  # as in the CRD
LARGEST_CLUSTER: Final = 130_000  # nodes that the design is sized for


class PinSetting(StrEnum):
    """How a released pod is tied to its node (design: "pin: auto")."""

    AUTO = "auto"  # affinity for pods with a controller, nominated for the others
    AFFINITY = "affinity"
    NOMINATE = "nominate"


class FirstList(StrEnum):
    """How lists of nodes and pods are read (docs/design/first-list.md)."""

    COLUMNS = "columns"  # all objects of a page together
    PLAIN = "plain"  # one object at a time: the same state, for many times the CPU


class ListenSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The address of the listener."""

    #: an IP address or a host name
    host: str = "127.0.0.1"
    #: 0: the operating system chooses one
    port: int = 0
    #: at a time; beyond it those that have shown nothing are closed first
    connections: int = 1024
    #: for the head of a request
    head_seconds: float = 5.0


class TlsFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Files of the serving certificate."""

    #: the certificate chain (PEM)
    cert_file: str
    #: the private key (PEM)
    key_file: str
    #: makes client certificates mandatory; with ``callers.tokens`` a token is enough instead
    client_ca_file: str | None = None
    #: time between checks whether the files were replaced
    check_seconds: float = 10.0


class ApiServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Requests to the API server."""

    #: the time-out of one request
    request_timeout_seconds: float = 30.0


class Autoscaler(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How an autoscaler is asked for nodes that gangs lack; by default it is not asked."""

    #: class of the ProvisioningRequests, for instance
    #: ``check-capacity.autoscaling.x-k8s.io``; null: none are made
    provisioning_class: str | None = None
    #: parameters of the requests; the class defines their names
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    #: for which gangs: those that do not fit even into the empty cluster, or all that do not fit
    ask: NodeNeed = NodeNeed.BEYOND_CLUSTER
    #: whether gates are removed without a plan if the API is not served, or no class is set
    release_unpinned: bool = False
    #: how long a gang must lack nodes before they are requested
    after_seconds: float = 30.0
    #: time until the next request after one that failed or expired
    retry_seconds: float = 300.0


class ConditionsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When conditions say why a gang waits."""

    #: how long a gang must wait for the same cause before that is written
    after_seconds: float = 10.0
    #: the most PATCHes to waiting pods; 0: none, but conditions of PodGroups are still written
    patches_per_second: int = 10


class QueueStatusConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When the statuses of queue objects are written, in every dialect (docs/design/queues.md)."""

    #: time between two looks at all queues
    every_seconds: float = 5.0
    #: the most PATCHes of statuses; 0: none is written
    patches_per_second: int = 20


class Dumps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What SIGUSR2 writes, and where (docs/replay.md)."""

    #: null: no dump is written, and a signal only causes a line in the log
    directory: str | None = None
    #: number of files to keep; older ones are deleted
    keep_files: int = 3
    #: number of the last plans, and of the last refusals, that are stored with the cluster as it
    #: was then; each takes about 8 MiB of memory at 130,000 nodes
    keep_decisions: int = 8
    #: how long a dump may take to plan open gangs; the others are recorded without an answer
    answer_seconds: float = 10.0


class StoryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is stored for ``muster story`` (docs/story.md)."""

    #: number of the last events, looks and decisions, about 0.4 KiB of memory each; 0: none
    entries: int = 50_000


class ScoringConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which node a lone pod prefers.

    The weights are for the profile ``weighted``. They are spelled like the arguments of Volcano's
    plugins nodeorder and binpack; ``muster.placement.scoring.profiles`` explains each.
    """

    #: least-stranded (by the requests seen so far), binpack, spread or weighted
    profile: Profile = Profile.LEAST_STRANDED
    #: of the share of the node's GPU memory that is used afterwards
    gpu_memory_weight: float = msgspec.field(default=1.0, name="gpuMemoryWeight")
    #: of the share of the node's devices that are used afterwards
    gpu_compute_weight: float = msgspec.field(default=0.8, name="gpuComputeWeight")
    #: of the share of the node's free devices that the request takes
    inter_gpu_comms_weight: float = msgspec.field(default=0.5, name="interGPUCommsWeight")

    #: of the used share of the resources that the pod requests
    binpack: float = msgspec.field(default=0.0, name="binpack.weight")
    #: of the used share of CPU and memory
    most_requested: float = msgspec.field(default=0.0, name="mostrequested.weight")
    #: of the free share of CPU and memory
    least_requested: float = msgspec.field(default=0.0, name="leastrequested.weight")
    #: of how equally CPU, memory and GPUs are used
    balanced: float = msgspec.field(default=0.0, name="balancedresource.weight")
    # the weights of the resources within ``binpack``
    binpack_cpu: float = msgspec.field(default=1.0, name="binpack.cpu")
    binpack_memory: float = msgspec.field(default=1.0, name="binpack.memory")
    binpack_gpu: float = msgspec.field(default=1.0, name="binpack.resources.nvidia.com/gpu")

    def as_scoring(self) -> Scoring:
        """Return the settings as the type that placement uses."""
        return Scoring(
            self.profile,
            Weights(
                gpu_memory=self.gpu_memory_weight,
                gpu_compute=self.gpu_compute_weight,
                inter_gpu_comms=self.inter_gpu_comms_weight,
                binpack=self.binpack,
                most_requested=self.most_requested,
                least_requested=self.least_requested,
                balanced=self.balanced,
                binpack_cpu=self.binpack_cpu,
                binpack_memory=self.binpack_memory,
                binpack_gpu=self.binpack_gpu,
            ),
        )

    def bounds(self) -> tuple[tuple[str, float, float, float], ...]:
        """Return every weight: its key, its value, and the allowed minimum and maximum."""
        return tuple(
            (f"scoring.{each.encode_name}", getattr(self, each.name), 0, 1000)
            for each in msgspec.structs.fields(self)
            if each.name != "profile"
        )


class Admission(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The webhook and what it adds to pods, so that pods which slipped past it are found."""

    #: name of its MutatingWebhookConfiguration; while it does not exist, no pod slips past
    webhook: str = "muster-webhook"
    #: whether the webhook injects: it has a section ``injection``, with a mode other than shadow
    injects: bool = True
    #: ``clusterProfile`` of that section; null: the ClusterProfile object counts, if it exists
    cluster_profile: str | None = None
    #: ``fabrics`` of that section; without ``cluster_profile`` the FabricProfile objects count
    fabrics: tuple[str, ...] = ()


class ExtenderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """All settings; the defaults suit a cluster of any size."""

    api_version: Literal["muster.dev/v1alpha1"] = msgspec.field(
        default="muster.dev/v1alpha1", name="apiVersion"
    )
    kind: Literal["ExtenderConfiguration"] = "ExtenderConfiguration"
    #: name in logs and metrics
    cluster: str = "default"
    listen: ListenSettings = ListenSettings()
    #: null: plain HTTP
    tls: TlsFiles | None = None
    #: who may call (``extender.config.callers``)
    callers: CallersSettings = CallersSettings()
    api_server: ApiServer = ApiServer()
    #: how several replicas agree on one (``extender.config.election``)
    leader_election: LeaderElection = LeaderElection()
    #: node label keys, widest first, the host key last
    levels: tuple[str, ...] = names.DEFAULT_LEVELS
    #: which pods are managed; must be equal to the webhook's section of this name
    managed: ManagedConfig = ManagedConfig()
    #: how an autoscaler is asked for missing nodes
    autoscaler: Autoscaler = Autoscaler()
    #: when conditions say why gangs wait
    conditions: ConditionsConfig = ConditionsConfig()
    #: who goes before a gang that waits for room (``extender.config.backfill``)
    backfill: BackfillConfig = BackfillConfig()
    #: gangs that give way to others (``extender.config.makingroom``)
    making_room: MakingRoomConfig = MakingRoomConfig()
    #: nodes that gangs leave whole (``extender.config.draining``)
    draining: DrainingConfig = DrainingConfig()
    #: when the statuses of queue objects are written
    queue_statuses: QueueStatusConfig = QueueStatusConfig()
    #: the ConfigMap with YuniKorn's queues (``extender.config.queuefiles``); null: none is watched
    yunikorn_queues: YuniKornQueuesConfig | None = None
    #: dialects whose queues admit more than gangs (``extender.config.queueing``)
    queueing: QueueingConfig = QueueingConfig()
    #: what the webhook adds to pods, so that pods which slipped past it are found
    admission: Admission = Admission()
    #: what SIGUSR2 writes
    dump: Dumps = Dumps()
    #: which node a lone pod prefers
    scoring: ScoringConfig = ScoringConfig()
    #: what is stored for ``muster story``
    story: StoryConfig = StoryConfig()
    #: how lists of nodes and pods are read at a start and after a watch broke; use ``plain`` if a
    #: start fails and ``columns`` may be the reason
    first_list: FirstList = FirstList.COLUMNS
    #: how a released pod is tied to its node
    pin: PinSetting = PinSetting.AUTO
    #: further nodes that each released pod may go to
    spare_count: int = 1
    #: how long planned room is held for a pod that is not released yet
    hold_seconds: float = 60.0
    #: how long to wait for more members of a gang of unknown size
    assembly_window_seconds: float = 0.2
    #: number of release PATCHes in flight
    release_concurrency: int = 32  # 16: 6 % fewer pods/s; 64: no more, and longer loop stalls
    #: how long a pod pinned to a node that has filled up waits before it is evicted
    evict_after_seconds: float = 300.0
    #: how long kube-scheduler must reject a released pod, by a filter that is not in the model,
    #: before the pod is planned elsewhere
    refused_after_seconds: float = 60.0
    #: how long the node of a gang's lost member is kept for its successor
    keep_vacancy_seconds: float = 15.0
    #: how long a gang may have some but too few members bound before it is reported
    partial_after_seconds: float = 60.0
    #: after how long such a gang is evicted and planned again, if it was never whole; null: never
    roll_back_after_seconds: float | None = 600.0
    #: events that arrive within this time share one planning cycle
    debounce_seconds: float = 0.005
    #: planning time after which the waiting gangs are ordered again
    cycle_seconds: float = 0.1
    #: largest body of a request; a larger one is answered with 413
    body_limit_bytes: int = 64 * MIB
    #: how long calls and releases in flight may take after SIGTERM
    drain_seconds: float = 10.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def asks_certificates(self) -> bool:
        """Whether callers may, or must, show a certificate."""
        return self.tls is not None and self.tls.client_ca_file is not None


def load(path: Path) -> ExtenderConfig:
    """Read ``path``. Raises ``ConfigError``; its text names each problem and what is allowed."""
    return configfile.load(path, ExtenderConfig, _problems)


def parse(data: bytes, *, source: str) -> ExtenderConfig:
    """Read YAML ``data``; messages call it ``source``."""
    return configfile.parse(data, ExtenderConfig, _problems, source=source)


def _problems(config: ExtenderConfig) -> list[str]:
    """Return one line per value that has the right type but is invalid."""
    return [
        *_level_problems(config.levels),
        *_number_problems(config),
        *_name_problems(config),
        *election.problems(config.leader_election),
        *backfillconfig.problems(config.backfill),
        *makingroomconfig.problems(config.making_room),
        *drainingconfig.problems(config.draining),
        *queuefiles.problems(config.yunikorn_queues),
        *queueingconfig.problems(config.queueing),
        *callersconfig.problems(
            config.callers,
            config.listen.host,
            tls=config.tls is not None,
            certificates=config.asks_certificates,
        ),
    ]


def _level_problems(levels: tuple[str, ...]) -> list[str]:
    problems = []
    if not levels:
        problems.append(f"levels: is empty; name at least the host level, {names.HOST}")
    if len(set(levels)) != len(levels):
        problems.append(f"levels: {', '.join(levels)}: a level is named twice")
    problems.extend(
        f"levels[{i}]: {level!r} is not a label key; allowed are keys such as {names.RACK}"
        for i, level in enumerate(levels)
        if not level or any(c.isspace() for c in level) or level.count("/") > 1
    )
    return problems


def _number_problems(config: ExtenderConfig) -> list[str]:
    smallest_body = LARGEST_CLUSTER * 8  # for a full-size cluster with the shortest names
    bounds: tuple[tuple[str, float, float, float], ...] = (
        ("listen.port", config.listen.port, 0, 65535),
        ("listen.connections", config.listen.connections, 16, 65536),
        ("listen.headSeconds", config.listen.head_seconds, 0.1, 30),
        ("spareCount", config.spare_count, 0, 7),
        ("holdSeconds", config.hold_seconds, 1, 3600),
        ("assemblyWindowSeconds", config.assembly_window_seconds, 0, 600),
        ("releaseConcurrency", config.release_concurrency, 1, 1024),
        ("evictAfterSeconds", config.evict_after_seconds, 0, 86400),
        ("refusedAfterSeconds", config.refused_after_seconds, 0, 86400),
        ("keepVacancySeconds", config.keep_vacancy_seconds, 0, 3600),
        ("partialAfterSeconds", config.partial_after_seconds, 0, 86400),
        ("rollBackAfterSeconds", config.roll_back_after_seconds or 0, 0, 86400),
        ("debounceSeconds", config.debounce_seconds, 0, 10),
        ("cycleSeconds", config.cycle_seconds, 0.001, 60),
        ("bodyLimitBytes", config.body_limit_bytes, smallest_body, 2**31),
        ("autoscaler.afterSeconds", config.autoscaler.after_seconds, 0, 86400),
        ("autoscaler.retrySeconds", config.autoscaler.retry_seconds, 1, 86400),
        ("conditions.afterSeconds", config.conditions.after_seconds, 0, 86400),
        ("conditions.patchesPerSecond", config.conditions.patches_per_second, 0, 1000),
        ("queueStatuses.everySeconds", config.queue_statuses.every_seconds, 0.2, 3600),
        (
            "queueStatuses.patchesPerSecond",
            config.queue_statuses.patches_per_second,
            0,
            1000,
        ),
        ("dump.keepFiles", config.dump.keep_files, 1, 100),
        ("dump.keepDecisions", config.dump.keep_decisions, 0, 64),
        ("dump.answerSeconds", config.dump.answer_seconds, 0, 600),
        ("story.entries", config.story.entries, 0, 500_000),
        *config.scoring.bounds(),
        ("drainSeconds", config.drain_seconds, 0, 600),
        ("apiServer.requestTimeoutSeconds", config.api_server.request_timeout_seconds, 0.1, 600),
    )
    if config.tls is not None:
        bounds += (("tls.checkSeconds", config.tls.check_seconds, 0.05, 86400),)
    return configfile.out_of_range(bounds)


def _name_problems(config: ExtenderConfig) -> list[str]:
    problems = []
    if not config.cluster:
        problems.append("cluster: is empty; allowed is any name, different for each cluster")
    if not config.scoring.as_scoring().weights.total:
        problems.append(
            "scoring: gpuMemoryWeight, gpuComputeWeight, interGPUCommsWeight and all keys that end "
            "in .weight are 0; one of them must be more"
        )
    directory = config.dump.directory
    if directory is not None and not Path(directory).is_absolute():
        problems.append(
            f"dump.directory: {directory!r} is not an absolute path; allowed are paths such as "
            "/var/lib/muster/dumps"
        )
    wanted = config.autoscaler.provisioning_class
    if wanted is not None and not _CLASS_NAME.fullmatch(wanted):
        problems.append(
            f"autoscaler.provisioningClass: {wanted!r} is not a class name; allowed are names such "
            f"as {CHECK_CAPACITY} and {BEST_EFFORT_ATOMIC}"
        )
    try:
        ManagedPolicy.of(config.managed)
    except ValueError as error:
        problems.append(str(error))
    return problems
