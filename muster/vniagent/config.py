"""The agent's configuration file; everything has a default that suits a DaemonSet."""

from pathlib import Path
from typing import Literal

import msgspec

from muster.observability import configfile


class AgentListen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where health and metrics are served."""

    host: str = "127.0.0.1"
    #: A port of the host, because the pod is in the host's network.
    port: int = 9447


class AgentConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The agent's configuration."""

    api_version: Literal["muster.dev/v1alpha1"] = msgspec.field(
        default="muster.dev/v1alpha1", name="apiVersion"
    )
    kind: Literal["VNIAgentConfiguration"] = "VNIAgentConfiguration"
    listen: AgentListen = AgentListen()
    #: Seconds between two checks of the devices when nothing has changed.
    resync_seconds: float = 30.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"


def load(path: Path) -> AgentConfig:
    """Read ``path``; raises ``ConfigError`` that names what to correct."""
    return configfile.load(path, AgentConfig, _problems)


def _problems(config: AgentConfig) -> list[str]:
    return configfile.out_of_range(
        (
            ("listen.port", config.listen.port, 0, 65535),
            ("resyncSeconds", config.resync_seconds, 0.1, 3600),
        )
    )
