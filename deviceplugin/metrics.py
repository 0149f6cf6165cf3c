"""The plugin's own metrics, of closed sets of labels. Documented in docs/metrics.md.

Series per device are the exporter's (``deviceplugin.exporter.board``).
"""

from prometheus_client import CollectorRegistry, Counter, Gauge

from muster.observability.apicalls import ApiCalls
from muster.observability.metrics import histogram


class DevicePluginMetrics:
    """Every metric of one plugin, registered in ``registry``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.api_calls = ApiCalls(registry)
        self.devices = Gauge(
            "muster_device_plugin_devices",
            "Devices by kind and state of health.",
            ("kind", "state"),
            registry=registry,
        )
        self.state_changes = Counter(
            "muster_device_plugin_state_changes",
            "Changes of devices' health, by kind and the state they went to.",
            ("kind", "state"),
            registry=registry,
        )
        self.calls = Counter(
            "muster_device_plugin_calls",
            "Calls of the kubelet by method and how they ended.",
            ("verb", "outcome"),
            registry=registry,
        )
        self.registrations = Counter(
            "muster_device_plugin_registrations",
            "Registrations with the kubelet.",
            ("resource", "outcome"),
            registry=registry,
        )
        self.deviations = Counter(
            "muster_device_plugin_deviations",
            "Containers that the kubelet gave other devices than the extender chose.",
            ("outcome",),
            registry=registry,
        )
        self.backend_up = Gauge(
            "muster_device_plugin_backend_up",
            "1 while a backend answers.",
            ("backend",),
            registry=registry,
        )
        self.pod_resources_failures = Counter(
            "muster_device_plugin_pod_resources_failures",
            "Questions to the kubelet's pod-resources API that were not answered.",
            registry=registry,
        )
        self.exporter_seconds = histogram(
            registry, "muster_device_plugin_scrape_seconds", "Time to put one scrape together."
        )
