"""The extender's configuration file: versioned YAML, every field checked on load.

A misspelt field or an unknown topology level would otherwise show as gangs that wait
for ever with nothing to say why, so unknown fields are refused and every message names
the file, the field, the value and what is allowed.
"""

import re
from enum import StrEnum
from pathlib import Path
from typing import Final, Literal

import msgspec

from extender.config import callers as callersconfig
from extender.config import election
from extender.config.callers import CallersSettings
from extender.config.election import LeaderElection
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
_CLASS_NAME: Final = re.compile(rf"{_PART}(\.{_PART})*")  # as the CRD wants it
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
    """Where to listen. Port 0 lets the operating system choose."""

    host: str = "127.0.0.1"
    port: int = 0


class TlsFiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Files of the serving certificate."""

    cert_file: str
    key_file: str
    #: makes client certificates mandatory; with ``callers.tokens`` a token will do instead
    client_ca_file: str | None = None
    #: between looks at the files, to serve what replaced them
    check_seconds: float = 10.0


class ApiServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How the API server is talked to."""

    request_timeout_seconds: float = 30.0


class Autoscaler(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How nodes are asked for that a gang lacks; by default they are not."""

    #: class of the ProvisioningRequests, for instance
    #: ``check-capacity.autoscaling.x-k8s.io``; null: none are made
    provisioning_class: str | None = None
    #: what the class understands
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    #: for gangs that not even the empty cluster could hold, or for all that do not fit
    ask: NodeNeed = NodeNeed.BEYOND_CLUSTER
    #: whether gates are lifted without a plan where that API is not served, or no class is set
    release_unpinned: bool = False
    #: how long a gang lacks nodes first
    after_seconds: float = 30.0
    #: after a request that failed or expired
    retry_seconds: float = 300.0


class ConditionsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When conditions say why a gang waits."""

    #: how long a gang waits for the same cause first
    after_seconds: float = 10.0
    #: to waiting pods, at most; 0: none, those of PodGroups are written all the same
    patches_per_second: int = 10


class Dumps(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What SIGUSR2 writes, and where (docs/replay.md)."""

    #: null: a signal is answered with a line in the log
    directory: str | None = None
    #: older ones are deleted
    keep_files: int = 3
    #: so many of the last plans and of the last refusals, each with the cluster as it was then;
    #: one takes about 8 MiB of memory at 130,000 nodes
    keep_decisions: int = 8
    #: how long open gangs are asked for a dump; later ones are recorded without an answer
    answer_seconds: float = 10.0


class StoryConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What is kept for ``muster story`` (docs/story.md)."""

    #: events, looks and decisions, the last ones, some 0.4 KiB of memory each; 0: none
    entries: int = 50_000


class ScoringConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which node a pod that comes alone prefers.

    The weights are those of the profile weighted, in the spelling of the arguments of Volcano's
    plugins nodeorder and binpack (``muster.placement.scoring.profiles`` has what they weigh).
    """

    #: least-stranded (by the requests seen so far), binpack, spread or weighted
    profile: Profile = Profile.LEAST_STRANDED
    gpu_memory_weight: float = msgspec.field(default=1.0, name="gpuMemoryWeight")
    gpu_compute_weight: float = msgspec.field(default=0.8, name="gpuComputeWeight")
    inter_gpu_comms_weight: float = msgspec.field(default=0.5, name="interGPUCommsWeight")

    binpack: float = msgspec.field(default=0.0, name="binpack.weight")
    most_requested: float = msgspec.field(default=0.0, name="mostrequested.weight")
    least_requested: float = msgspec.field(default=0.0, name="leastrequested.weight")
    balanced: float = msgspec.field(default=0.0, name="balancedresource.weight")
    binpack_cpu: float = msgspec.field(default=1.0, name="binpack.cpu")
    binpack_memory: float = msgspec.field(default=1.0, name="binpack.memory")
    binpack_gpu: float = msgspec.field(default=1.0, name="binpack.resources.nvidia.com/gpu")

    def as_scoring(self) -> Scoring:
        """Return it in placement's words."""
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
        """Return every weight by its key, with the least and the most that is allowed."""
        return tuple(
            (f"scoring.{each.encode_name}", getattr(self, each.name), 0, 1000)
            for each in msgspec.structs.fields(self)
            if each.name != "profile"
        )


class Admission(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The webhook, and what it gives, for pods that slipped past it to be found."""

    #: name of its MutatingWebhookConfiguration; while there is none, no pod slips past
    webhook: str = "muster-webhook"
    #: false where the webhook has no section ``injection``, or its mode is shadow
    injects: bool = True
    #: the file of that section; without it the ClusterProfile of the cluster counts, if it exists
    cluster_profile: str | None = None
    #: the files of that section; without ``cluster_profile`` the cluster's FabricProfiles count
    fabrics: tuple[str, ...] = ()


class ExtenderConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Everything that can be set; the defaults suit a cluster of any size."""

    api_version: Literal["muster.dev/v1alpha1"] = msgspec.field(
        default="muster.dev/v1alpha1", name="apiVersion"
    )
    kind: Literal["ExtenderConfiguration"] = "ExtenderConfiguration"
    #: name in logs and metrics
    cluster: str = "default"
    listen: ListenSettings = ListenSettings()
    tls: TlsFiles | None = None
    #: who may call (``extender.config.callers``)
    callers: CallersSettings = CallersSettings()
    api_server: ApiServer = ApiServer()
    #: how several replicas agree on one (``extender.config.election``)
    leader_election: LeaderElection = LeaderElection()
    #: node label keys, widest first, the host key last
    levels: tuple[str, ...] = names.DEFAULT_LEVELS
    #: which pods are Muster's; must be the same as the webhook's section of this name
    managed: ManagedConfig = ManagedConfig()
    #: how nodes are asked for that are missing
    autoscaler: Autoscaler = Autoscaler()
    #: when conditions say why gangs wait
    conditions: ConditionsConfig = ConditionsConfig()
    #: what the webhook gives, so that pods which slipped past it are found
    admission: Admission = Admission()
    #: what SIGUSR2 writes
    dump: Dumps = Dumps()
    #: which node a pod that comes alone prefers
    scoring: ScoringConfig = ScoringConfig()
    #: what is kept for ``muster story``
    story: StoryConfig = StoryConfig()
    #: How the lists of nodes and pods are read with which a start, and a watch that broke, begins.
    #: ``plain`` is the way to take when a start goes wrong that the columns may be to blame for.
    first_list: FirstList = FirstList.COLUMNS
    #: how a released pod is tied to its node
    pin: PinSetting = PinSetting.AUTO
    #: further nodes that each released pod may go to
    spare_count: int = 1
    #: how long planned room is kept for a pod that is not released yet
    hold_seconds: float = 60.0
    #: how long a gang of unknown size is given for more members
    assembly_window_seconds: float = 0.2
    #: PATCHes in flight
    release_concurrency: int = 32  # 16: 6 % fewer pods/s; 64: no more, and longer loop stalls
    #: how long a pod pinned to a node that has filled up waits before it is evicted
    evict_after_seconds: float = 300.0
    #: how long kube-scheduler may turn a released pod away, for a reason of its own, before the pod
    #: is planned elsewhere
    refused_after_seconds: float = 60.0
    #: how long the node of a gang's lost member is kept for its successor
    keep_vacancy_seconds: float = 15.0
    #: how long a gang may have some but too few members bound before it is reported
    partial_after_seconds: float = 60.0
    #: how long before such a gang, if it never ran whole, is evicted to be planned anew; null:
    #: never
    roll_back_after_seconds: float | None = 600.0
    #: events that come within it share one planning cycle
    debounce_seconds: float = 0.005
    #: planning time after which the list of waiting gangs is read anew
    cycle_seconds: float = 0.1
    #: largest request; more is answered 413
    body_limit_bytes: int = 64 * MIB
    #: time for calls and releases in flight after SIGTERM
    drain_seconds: float = 10.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def asks_certificates(self) -> bool:
        """Whether callers may, or must, show a certificate."""
        return self.tls is not None and self.tls.client_ca_file is not None


def load(path: Path) -> ExtenderConfig:
    """Read ``path``; raises ``ConfigError`` whose text says what to mend."""
    return configfile.load(path, ExtenderConfig, _problems)


def parse(data: bytes, *, source: str) -> ExtenderConfig:
    """Read YAML ``data``; ``source`` is what messages call it."""
    return configfile.parse(data, ExtenderConfig, _problems, source=source)


def _problems(config: ExtenderConfig) -> list[str]:
    """Return one line per value that has the right type and makes no sense."""
    return [
        *_level_problems(config.levels),
        *_number_problems(config),
        *_name_problems(config),
        *election.problems(config.leader_election),
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
    smallest_body = LARGEST_CLUSTER * 8  # even the shortest names of a full-size cluster
    bounds: tuple[tuple[str, float, float, float], ...] = (
        ("listen.port", config.listen.port, 0, 65535),
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
        problems.append("cluster: is empty; any name that tells this cluster from others")
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
