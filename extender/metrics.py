"""The extender's metrics. Documented in docs/metrics.md; a test compares the two."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from muster.observability.apicalls import ApiCalls
from muster.observability.idleconnections import ConnectionMetrics
from muster.observability.metrics import WAIT_BUCKETS_S, histogram, loop_lag

SLIP_BUCKETS_S: Final = (0.0, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)


class Verb(StrEnum):
    """The four verbs of the wire."""

    FILTER = "filter"
    PRIORITIZE = "prioritize"
    PREEMPT = "preempt"
    BIND = "bind"


class RequestOutcome(StrEnum):
    """How a request ended."""

    OK = "ok"
    REFUSED = "refused"  # the body did not match the wire format, or was too large
    ERROR = "error"  # an error in the reply's error field, or not ready


class FilterAnswer(StrEnum):
    """The kinds of answers of ``filter``."""

    PLANNED = "planned"
    SPARE = "spare"
    WAITING = "waiting"
    ELSEWHERE = "elsewhere"
    LOST = "lost"
    UNMANAGED = "unmanaged"


class ExtenderMetrics:
    """Every metric of one extender, registered in ``registry``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, labels, registry=registry)

        self.registry = registry
        self.loop_lag = loop_lag(registry)
        requests = histogram(
            registry,
            "muster_extender_request_duration_seconds",
            "Time to answer one call of kube-scheduler, reading the body not included.",
            ("verb", "outcome"),
        )
        # Children are looked up once: on the filter path a look-up costs more than the answer.
        self.requests = {
            (v, o): requests.labels(v.value, o.value) for v in Verb for o in RequestOutcome
        }
        self.connections = ConnectionMetrics(
            Gauge("muster_extender_connections", "Connections that are open.", registry=registry),
            counter(
                "muster_extender_connections_closed",
                "Connections closed because their client was slow, or there were too many.",
                "reason",
            ),
        )
        answers = counter("muster_filter_answers_total", "Answers of filter by kind.", "answer")
        self.answers = {answer: answers.labels(answer.value) for answer in FilterAnswer}
        self.decisions = histogram(
            registry,
            "muster_plan_duration_seconds",
            "Time to plan one gang, slices given to the event loop included.",
            ("outcome",),
        )
        self.stale_plans = counter(
            "muster_stale_plans_total", "Plans refused because the cluster had moved on."
        )
        self.faults = counter(
            "muster_planner_faults_total",
            "Faults of the planner itself, by kind; each is in the log.",
            "kind",
        )
        self.gang_wait = histogram(
            registry,
            "muster_gang_wait_seconds",
            "From a gang's submission to its first plan.",
            buckets=WAIT_BUCKETS_S,
        )
        self.gang_bound = histogram(
            registry,
            "muster_gang_bound_seconds",
            "From a gang's submission until all of its first plan was bound.",
            buckets=WAIT_BUCKETS_S,
        )
        self.api_calls = ApiCalls(registry)
        self.releases = counter("muster_releases_total", "Release PATCHes by outcome.", "outcome")
        self.reservations = counter(
            "muster_reservations_total",
            "Gangs for which room was asked before their pods were made, by what came of it.",
            "outcome",
        )
        self.promises = counter(
            "muster_promises_total",
            "Starts promised to gangs that wait, by what became of it.",
            "outcome",
        )
        self.promise_slip = histogram(
            registry,
            "muster_promise_slip_seconds",
            "By how much later than first promised gangs got their room.",
            buckets=SLIP_BUCKETS_S,
        )
        self.backfilled = counter(
            "muster_backfilled_gangs_total",
            "Gangs that got room while one that waits has a promise, and delay it nowhere.",
        )
        self.resumed_jobs = counter(
            "muster_resumed_jobs_total",
            "Jobs that Muster suspended and resumed, by what came of it.",
            "outcome",
        )
        self.evictions = counter(
            "muster_evictions_total",
            "Pods evicted because their pin broke, their gang is rolled back or gives way.",
            "outcome",
        )
        self.given_way = counter(
            "muster_gangs_given_way_total",
            "Gangs that gave way to another: suspended, evicted, or kept by a disruption budget.",
            "outcome",
        )
        self.lost_seconds = counter(
            "muster_lost_device_seconds_total",
            "Seconds of work of devices that were lost with gangs that gave way.",
        )
        self.leaving_nodes, self.leaving_gangs = (
            Gauge(name, text, registry=registry)
            for name, text in (
                ("muster_leaving_nodes", "Nodes that gangs leave."),
                ("muster_leaving_gangs", "Gangs with members on nodes that gangs leave."),
            )
        )
        self.rollbacks = counter(
            "muster_gang_rollbacks_total", "Times a gang that ran in part was taken down whole."
        )
        self.broken = counter(
            "muster_broken_plans_total",
            "Released pods whose pin cannot be kept, by remedy.",
            "remedy",
        )
        self.provisioning = counter(
            "muster_provisioning_total",
            "Gangs for which an autoscaler was asked for nodes, by what became of it.",
            "outcome",
        )
        self.unmodelled = counter(
            "muster_unmodelled_pods_total",
            "Managed pods with a constraint the model does not know.",
        )
        self.foreign = counter(
            "muster_foreign_scheduler_pods_total", "Pods that ask for another scheduler by name."
        )
        self.slipped = Gauge(
            "muster_slipped_pods",
            "Pods that came while no webhook answered, by what they lack.",
            ("lacks",),
            registry=registry,
        )
        self.unfounded_plans = counter(
            "muster_unfounded_plans_total",
            "Plans on pods without a node that Muster did not write for these pods.",
            "reason",
        )
        self.conflicts = counter(
            "muster_group_conflicts_total", "Pods that name groups of several dialects."
        )
        self.queue_statuses = counter(
            "muster_queue_status_writes_total",
            "Statuses of queue objects that were written, by outcome.",
            "outcome",
        )
        self.statuses = counter(
            "muster_status_writes_total",
            "Statuses written in the place of another scheduler, by outcome.",
            "outcome",
        )
        self.conditions = counter(
            "muster_condition_writes_total",
            "Conditions written on pods that wait, by outcome.",
            "outcome",
        )
        self.applied = counter("muster_watch_events_total", "Watch events applied.", "resource")
        self.unreadable = counter(
            "muster_unreadable_objects_total", "Objects that could not be translated.", "resource"
        )
        self.relists = counter("muster_watch_relists_total", "Complete relists.", "resource")
        self.leader = Gauge("muster_leader", "Whether this replica leads.", registry=registry)
        self.lease_transitions = Gauge(
            "muster_lease_transitions", "Changes of leader, as the Lease counts.", registry=registry
        )
        self.lease_requests = counter(
            "muster_lease_requests_total", "Looks at the Lease and writes to it.", "outcome"
        )
        self.fenced_writes = counter(
            "muster_fenced_writes_total", "Writes not sent, because this replica does not lead."
        )
        self.refused_callers = counter(
            "muster_refused_callers_total", "Calls that were not let in.", "route", "reason"
        )
        self.caller_reviews = counter(
            "muster_caller_reviews_total",
            "Questions to the API server about callers with a token.",
            "kind",
            "outcome",
        )
        self.job_networks = counter(
            "muster_job_networks_total", "Isolated networks of jobs by what was done.", "outcome"
        )
        self.vni_pool_size, self.vni_pool_used = (
            Gauge(name, text, ("pool",), registry=registry)
            for name, text in (
                ("muster_vni_pool_size", "VNIs of a pool."),
                ("muster_vni_pool_used", "VNIs of a pool that are not free."),
            )
        )
        self.vni_waiting = Gauge(
            "muster_vni_waiting_gangs",
            "Gangs that wait for an isolated network.",
            registry=registry,
        )
        self.job_networks_late = Gauge(
            "muster_job_networks_late",
            "Isolated networks that lack devices on a node for more than a minute.",
            registry=registry,
        )
        self.device_troubles = Gauge(
            "muster_device_troubles",
            "Devices of pods that are not as planned, by what is wrong.",
            ("kind",),
            registry=registry,
        )
        self.apply_seconds = histogram(
            registry, "muster_apply_batch_seconds", "Time to apply one batch of watch events."
        )

    def caller_reviewed(self, kind: str, outcome: str) -> None:
        """Count one question to the API server about a caller."""
        self.caller_reviews.labels(kind, outcome).inc()


Counts = Callable[[], Mapping[str, int]]
Count = Callable[[], int]


@dataclass(frozen=True, slots=True)
class Readings:
    """Functions that return the values of gauges; called when metrics are scraped."""

    #: gangs by phase
    gangs: Counts
    #: held pods by state
    holds: Counts
    #: waiting gangs by cause
    queued_gangs: Counts
    #: waiting pods by cause
    queued_pods: Counts
    #: how long the oldest gang has waited, in seconds
    oldest_s: Callable[[], float]
    #: complete gangs that do not fit
    waiting: Count
    #: watch events that are not applied yet
    backlog: Count
    #: gangs with too few bound members
    partial: Count
    #: what hot spares hold, by resource
    spares: Counts


class StateCollector(Collector):
    """Gauges read when scraped: gangs by phase and in part, the queue, holds, two backlogs."""

    def __init__(self, read: Readings) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """Yield the families; called by the registry on every scrape."""
        read = self._read
        yield _by("muster_gangs", "Gangs by phase.", "phase", read.gangs())
        yield _by("muster_ledger_entries", "Held pods by state.", "state", read.holds())
        yield _by("muster_queue_gangs", "Gangs that wait, by cause.", "cause", read.queued_gangs())
        yield _by("muster_queue_pods", "Pods that wait, by cause.", "cause", read.queued_pods())
        text = "What hot spares keep from other gangs, by resource, in base units."
        yield _by("muster_spare_reserved", text, "resource", read.spares())
        for name, text, value in (
            ("muster_queue_oldest_seconds", "Age of the oldest gang that waits.", read.oldest_s()),
            ("muster_gangs_partial", "Gangs with too few bound.", read.partial()),
            ("muster_gangs_waiting", "Complete gangs that do not fit.", read.waiting()),
            ("muster_watch_backlog", "Watch events not applied yet.", read.backlog()),
        ):
            yield GaugeMetricFamily(name, text, value)


def _by(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family
