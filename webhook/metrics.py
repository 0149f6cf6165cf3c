"""The webhook's metrics. Labels come from closed sets; no object's name becomes one."""

from datetime import datetime
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

from observability.metrics import histogram

_BY_PATH: Final = ("path",)


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
            "Time from the first byte read to the reply, by path.",
            _BY_PATH,
        )
        self.gated = Counter(
            "muster_webhook_pods_gated", "Pods given the scheduling gate.", registry=registry
        )
        self.rewritten = Counter(
            "muster_webhook_scheduler_names_rewritten",
            "Pods whose scheduler name was replaced, by the name they came with.",
            ("scheduler",),
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

    def certificate(self, expires: datetime | None) -> None:
        """Note when the certificate being served expires."""
        if expires is not None:
            self.expires.set(expires.timestamp())
