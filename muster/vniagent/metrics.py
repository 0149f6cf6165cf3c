"""The agent's metrics. Documented in docs/metrics.md; a test compares the two."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from muster.observability.apicalls import ApiCalls


class AgentMetrics:
    """Every metric of one agent, registered in ``registry``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.api_calls = ApiCalls(registry)
        self.wanted = Gauge(
            "muster_vni_agent_networks", "Networks that the node should have.", registry=registry
        )
        self.ready = Gauge(
            "muster_vni_agent_networks_ready", "Those that stand whole.", registry=registry
        )
        self.devices = Gauge(
            "muster_vni_agent_devices", "Devices of ours on the node.", registry=registry
        )
        self.steps = Counter(
            "muster_vni_agent_steps_total",
            "Changes of devices by what was done and how it ended.",
            ("step", "outcome"),
            registry=registry,
        )
        self.clashes = Gauge(
            "muster_vni_agent_clashes",
            "Networks whose device names belong to somebody else.",
            registry=registry,
        )
        self.failures = Counter(
            "muster_vni_agent_failures_total", "Looks that failed.", ("cause",), registry=registry
        )
        self.last_success = Gauge(
            "muster_vni_agent_last_success_timestamp_seconds",
            "When everything was last as it should be, seconds since the epoch.",
            registry=registry,
        )
