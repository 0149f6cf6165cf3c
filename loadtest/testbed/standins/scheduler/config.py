"""The parts of ``KubeSchedulerConfiguration`` (kubescheduler.config.k8s.io/v1) that count here."""

import re
from pathlib import Path
from typing import Final

import msgspec
import yaml

DEFAULT_TIMEOUT: Final = 5.0  # seconds (pkg/scheduler/extender.go, DefaultExtenderTimeout)


class _Camel(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Base of the configuration's objects."""


class ManagedResource(_Camel, frozen=True, kw_only=True):
    """A resource; an extender wants to see the pods that ask for it."""

    name: str
    ignored_by_scheduler: bool = False


class TLSConfig(_Camel, frozen=True, kw_only=True):
    """How to trust an extender."""

    insecure: bool = False
    ca_file: str = ""


class ExtenderConfig(_Camel, frozen=True, kw_only=True):
    """One entry of ``extenders``."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TLSConfig | None = None
    http_timeout: str = ""
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def timeout(self) -> float:
        """Seconds before a call is given up."""
        return duration(self.http_timeout) or DEFAULT_TIMEOUT


class Profile(_Camel, frozen=True, kw_only=True):
    """A scheduler name that pods may ask for."""

    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = None


class ClientConnection(_Camel, frozen=True, kw_only=True):
    """Where the API server is."""

    kubeconfig: str = ""


class Configuration(_Camel, frozen=True, kw_only=True):
    """The whole file; unknown fields are left to the real scheduler."""

    client_connection: ClientConnection = ClientConnection()
    profiles: tuple[Profile, ...] = (Profile(),)
    extenders: tuple[ExtenderConfig, ...] = ()
    percentage_of_nodes_to_score: int = 0
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10

    def percentage(self, scheduler_name: str) -> int:
        """Return the share of nodes to score for a profile; 0 means adaptive."""
        for profile in self.profiles:
            if profile.scheduler_name == scheduler_name:
                own = profile.percentage_of_nodes_to_score
                return self.percentage_of_nodes_to_score if own is None else own
        return self.percentage_of_nodes_to_score


def load(path: Path) -> Configuration:
    """Read a configuration file; raises ``msgspec.ValidationError`` naming the field.

    Ignorable extenders go to the end (pkg/scheduler/scheduler.go, buildExtenders).
    """
    read = msgspec.convert(yaml.safe_load(path.read_text()), Configuration)
    ordered = sorted(read.extenders, key=lambda extender: extender.ignorable)
    return msgspec.structs.replace(read, extenders=tuple(ordered))


def duration(text: str) -> float:
    """Return the seconds of a Go duration such as ``1m30s`` or ``500ms``; ``""`` is 0."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    parts = re.findall(r"([\d.]+)(ms|us|ns|h|m|s)", text)
    return sum(float(number) * units[unit] for number, unit in parts)
