"""The webhook's metrics. Labels come from closed sets; no object's name becomes one.

Answers are counted, and what that comes to in metrics is added up when the registry is read.
One answer adds to some twenty counters, each of them five Python calls in prometheus-client and
together a third of all the calls that a shared answer took. Pods that are alike share their answer,
so it is enough to count how often each was given::

    answer given ─► times + 1 ──┬─ it makes room for a newer one ─► sums + times x amounts ─┐
                                └─ the registry is collected ─────► the same, of all        │
                                                                          │                 │
                                                                          └─► counters ◄────┘
"""

from collections import Counter as Sums
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.registry import Collector

from muster.injection.overrides.application import Overridden
from muster.injection.overrides.policy import Policies, PolicyDialect
from muster.injection.run import Injection
from muster.observability.metrics import histogram
from webhook.review.gate import Mutation
from webhook.review.injectionmode import fields_kept, fields_set

_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})  # admission/v1
KEPT: Final = 64  # answers being counted at a time: templates whose pods come together

MetricT = TypeVar("MetricT", Counter, Histogram)
GivenT = TypeVar("GivenT")


class Children(dict[tuple[str, ...], MetricT]):
    """The children of a metric by their labels, each looked up once: that takes microseconds."""

    def __init__(self, metric: MetricT) -> None:
        super().__init__()
        self._metric: MetricT = metric

    def __missing__(self, labels: tuple[str, ...]) -> MetricT:
        child: MetricT = self._metric.labels(*labels)
        self[labels] = child
        return child


@dataclass(slots=True)
class _Given(Generic[GivenT]):
    """``answer`` is held so that its identity stays its own."""

    answer: GivenT
    times: int = 0


class Tally(Collector, Generic[GivenT]):
    """Counts answers by their identity; ``amounts``: what one of them adds to which counters.

    It must be registered before these counters: a registry collects in that order. It shows
    nothing of its own, it brings them up to date.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        amounts: Callable[[GivenT], Iterable[tuple[Counter, int]]],
    ) -> None:
        self._amounts = amounts
        self._given: dict[int, _Given[GivenT]] = {}
        self._sums = Sums[Counter]()
        registry.register(self)

    def add(self, answer: GivenT) -> None:
        """Count an answer that was given."""
        given = self._given.get(id(answer))
        if given is None:
            given = self._given[id(answer)] = _Given(answer)
            if len(self._given) > KEPT:
                self._sum(self._given.pop(next(iter(self._given))))
        given.times += 1

    def count(self, counter: Counter) -> None:
        """Add one to a counter, when the registry is read."""
        self._sums[counter] += 1

    def collect(self) -> Iterable[Metric]:
        """Add what was counted to the counters."""
        for given in self._given.values():
            self._sum(given)
        for counter, amount in self._sums.items():
            counter.inc(amount)
        self._given.clear()
        self._sums.clear()
        return ()

    def _sum(self, given: _Given[GivenT]) -> None:
        for counter, amount in self._amounts(given.answer):
            self._sums[counter] += amount * given.times


def _counters(
    registry: CollectorRegistry, name: str, text: str, labels: tuple[str, ...]
) -> Children[Counter]:
    return Children(Counter(name, text, labels, registry=registry))


class Metrics:
    """One set per process part, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._done = Tally(registry, self._of_mutation)
        self._reviews = _counters(
            registry,
            "muster_webhook_reviews",
            "Admission reviews answered, by path and outcome.",
            ("path", "outcome"),
        )
        self._seconds = Children(
            histogram(
                registry,
                "muster_webhook_review_seconds",
                "Time from the first byte read to the reply.",
                ("path", "operation", "outcome"),
            )
        )
        self.gated = Counter(
            "muster_webhook_pods_gated", "Pods given the scheduling gate.", registry=registry
        )
        self.placed = Counter(
            "muster_webhook_pods_placed",
            "Pods made with the place that was reserved for them.",
            registry=registry,
        )
        self._rewritten = _counters(
            registry,
            "muster_webhook_scheduler_names_rewritten",
            "Pods whose scheduler name was replaced, by the name they came with.",
            ("scheduler",),
        )
        self._overrides = _counters(
            registry,
            "muster_webhook_overrides",
            "Override policies that pods had, by control plane and what came of them.",
            ("dialect", "outcome"),
        )
        self.unknown_owners = Counter(
            "muster_webhook_override_unknown_owners",
            "Pods whose override policies may be missing, because an owner was not known.",
            registry=registry,
        )
        self.policies = Gauge(
            "muster_webhook_override_policies",
            "Override policies there are, by control plane and whether they can be read.",
            ("dialect", "state"),
            registry=registry,
        )
        self.expires = Gauge(
            "muster_webhook_certificate_expiry_timestamp_seconds",
            "When the serving certificate stops being valid, seconds since the epoch.",
            registry=registry,
        )
        self.refresh_failures = Counter(
            "muster_webhook_certificate_refresh_failures",
            "Attempts to bring certificates and configurations up to date that failed.",
            registry=registry,
        )

        self.connections = Gauge(
            "muster_webhook_connections", "Connections that are open.", registry=registry
        )
        self.closed = Counter(
            "muster_webhook_connections_closed",
            "Connections closed because their client was slow, or there were too many.",
            ("reason",),
            registry=registry,
        )
        self._fields_set = _counters(
            registry,
            "muster_webhook_fields_injected",
            "Fields set on pods, by source and kind; in shadow mode those that would be.",
            ("source", "field"),
        )
        self._fields_kept = _counters(
            registry,
            "muster_webhook_fields_kept",
            "Fields that users had set otherwise than a source wanted them, and kept.",
            ("source", "field"),
        )
        self._pods = _counters(
            registry,
            "muster_webhook_pods_injected",
            "Pods by what injection decided about them.",
            ("outcome",),
        )
        self._objects = _counters(
            registry,
            "muster_webhook_objects_injected",
            "Objects that make pods, by what injection decided about their templates.",
            ("outcome",),
        )
        self.warnings = Counter(
            "muster_webhook_injection_warnings", "Warnings given to authors.", registry=registry
        )
        self._findings = _counters(
            registry,
            "muster_webhook_findings",
            "What checks found about pods, by check and whether it refuses the pod.",
            ("check", "outcome"),
        )
        self.broken_profiles = Gauge(
            "muster_webhook_profiles_broken",
            "ClusterProfiles and FabricProfiles that cannot be used as they are now.",
            registry=registry,
        )
        self.nodes = Gauge("muster_webhook_nodes", "Nodes known to injection.", registry=registry)

    def mutated(self, done: Mutation) -> None:
        """Note what was done to one pod."""
        self._done.add(done)

    def _of_mutation(self, done: Mutation) -> Iterator[tuple[Counter, int]]:
        """Yield what one mutation adds to which counter."""
        if done.gated:
            yield self.gated, 1
        if done.placed:
            yield self.placed, 1
        if done.rewritten:
            yield self._rewritten[(done.rewritten,)], 1
        if done.overridden is not None:
            yield from self._of_policies(done.overridden)
        if done.templates:
            yield self._objects[(done.templates,)], 1
        if done.injected is not None:
            yield from self._of_injection(done.injected)

    def _of_policies(self, found: Overridden) -> Iterator[tuple[Counter, int]]:
        for outcome in found.outcomes:
            came = "refused" if outcome.reason else "applied"
            yield self._overrides[outcome.policy.dialect, came], 1
        if found.missing is not None:
            yield self.unknown_owners, 1

    def _of_injection(self, decided: Injection) -> Iterator[tuple[Counter, int]]:
        outcome = (
            "refused" if decided.refusals else "changed" if decided.record.set else "unchanged"
        )
        yield self._pods[(outcome,)], 1
        for labels, count in fields_set(decided).items():
            yield self._fields_set[labels], count
        for labels, count in fields_kept(decided).items():
            yield self._fields_kept[labels], count
        for check, refused in decided.found:
            yield self._findings[check, "refused" if refused else "told"], 1
        if decided.warnings:
            yield self.warnings, len(decided.warnings)

    def reviewed(self, path: str, outcome: str) -> None:
        """Note one more review."""
        self._done.count(self._reviews[path, outcome])

    def answered(self, path: str, operation: str, outcome: str, seconds: float) -> None:
        """Note how long one review took."""
        sort = operation if operation in _OPERATIONS else "other"
        self._seconds[path, sort, outcome].observe(seconds)

    def policies_are(self, policies: Policies) -> None:
        """Note which override policies there are now."""
        counts = policies.counts()
        for dialect in PolicyDialect:
            for state in ("usable", "broken"):
                self.policies.labels(dialect, state).set(counts.get((dialect, state), 0))

    def certificate(self, expires: datetime | None) -> None:
        """Note when the certificate being served expires."""
        if expires is not None:
            self.expires.set(expires.timestamp())
