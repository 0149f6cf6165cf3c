"""The webhook's metrics. Labels come from closed sets; no object's name becomes one."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from injection.overrides.apply import Overridden
from injection.overrides.policy import Dialect, Policies
from injection.run import Injection
from observability.metrics import histogram
from webhook.injecting import fields_kept, fields_set

_TOLD: Final = 64  # decisions whose counts are at hand: alike pods share theirs
_OPERATIONS: Final = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})  # admission/v1


class Metrics:
    """One set per process part, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.reviews = Counter(
            "muster_webhook_reviews",
            "Admission reviews answered, by path and outcome.",
            ("path", "outcome"),
            registry=registry,
        )
        self.seconds = histogram(
            registry,
            "muster_webhook_review_seconds",
            "Time from the first byte read to the reply.",
            ("path", "operation", "outcome"),
        )
        self._children: dict[tuple[str, str, str], Histogram] = {}
        self._counts: dict[tuple[str, str], Counter] = {}
        self._told: dict[int, tuple[Injection, tuple[tuple[Counter, int], ...]]] = {}
        self.gated = Counter(
            "muster_webhook_pods_gated", "Pods given the scheduling gate.", registry=registry
        )
        self.rewritten = Counter(
            "muster_webhook_scheduler_names_rewritten",
            "Pods whose scheduler name was replaced, by the name they came with.",
            ("scheduler",),
            registry=registry,
        )
        self.overrides = Counter(
            "muster_webhook_overrides",
            "Override policies that pods had, by control plane and what came of them.",
            ("dialect", "outcome"),
            registry=registry,
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
        self.fields_set = Counter(
            "muster_webhook_fields_injected",
            "Fields set on pods, by source and kind; in shadow mode those that would be.",
            ("source", "field"),
            registry=registry,
        )
        self.fields_kept = Counter(
            "muster_webhook_fields_kept",
            "Fields that users had set otherwise than a source wanted them, and kept.",
            ("source", "field"),
            registry=registry,
        )
        self.pods = Counter(
            "muster_webhook_pods_injected",
            "Pods by what injection decided about them.",
            ("outcome",),
            registry=registry,
        )
        self.warnings = Counter(
            "muster_webhook_injection_warnings", "Warnings given to authors.", registry=registry
        )
        self.findings = Counter(
            "muster_webhook_findings",
            "What checks found about pods, by check and whether it refuses the pod.",
            ("check", "outcome"),
            registry=registry,
        )
        self.broken_profiles = Gauge(
            "muster_webhook_profiles_broken",
            "ClusterProfiles and FabricProfiles that cannot be used as they are now.",
            registry=registry,
        )
        self.nodes = Gauge("muster_webhook_nodes", "Nodes known to injection.", registry=registry)

    def injected(self, decided: Injection) -> None:
        """Note what injection decided about one pod."""
        known = self._told.get(id(decided))
        if known is None or known[0] is not decided:
            known = self._told[id(decided)] = decided, tuple(self._counted(decided))
            if len(self._told) > _TOLD:
                del self._told[next(iter(self._told))]
        for counter, count in known[1]:
            counter.inc(count)

    def _counted(self, decided: Injection) -> Iterator[tuple[Counter, int]]:
        """Yield what one decision adds to which counter; alike pods share theirs."""
        outcome = (
            "refused" if decided.refusals else "changed" if decided.record.set else "unchanged"
        )
        yield self.pods.labels(outcome), 1
        for labels, count in fields_set(decided).items():
            yield self.fields_set.labels(*labels), count
        for labels, count in fields_kept(decided).items():
            yield self.fields_kept.labels(*labels), count
        for check, refused in decided.found:
            yield self.findings.labels(check, "refused" if refused else "told"), 1
        if decided.warnings:
            yield self.warnings, len(decided.warnings)

    def reviewed(self, path: str, outcome: str) -> None:
        """Note one more review; its children are looked up once each."""
        child = self._counts.get((path, outcome))
        if child is None:
            child = self._counts[path, outcome] = self.reviews.labels(path, outcome)
        child.inc()

    def answered(self, path: str, operation: str, outcome: str, seconds: float) -> None:
        """Note how long one review took; its children are looked up once each."""
        key = path, operation if operation in _OPERATIONS else "other", outcome
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self.seconds.labels(*key)
        child.observe(seconds)

    def overridden(self, found: Overridden) -> None:
        """Note what came of one pod's override policies."""
        for outcome in found.outcomes:
            came = "refused" if outcome.reason else "applied"
            self.overrides.labels(outcome.policy.dialect, came).inc()
        if found.missing is not None:
            self.unknown_owners.inc()

    def policies_are(self, policies: Policies) -> None:
        """Note which override policies there are now."""
        counts = policies.counts()
        for dialect in Dialect:
            for state in ("usable", "broken"):
                self.policies.labels(dialect, state).set(counts.get((dialect, state), 0))

    def certificate(self, expires: datetime | None) -> None:
        """Note when the certificate being served expires."""
        if expires is not None:
            self.expires.set(expires.timestamp())
