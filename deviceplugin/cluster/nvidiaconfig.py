"""Reading NVIDIA's configuration files (``deviceplugin.resources.nvidia`` says what they mean).

The pools of Mellanox/k8s-rdma-shared-dev-plugin need no reader: its ``configList`` is the list that
``resources.rdma`` takes (``deviceplugin.resources.settings``).
"""

from pathlib import Path

from deviceplugin.resources import nvidia
from deviceplugin.resources.nvidia import AppliedFields, NvidiaConfig
from deviceplugin.resources.settings import ResourceSettings
from muster.observability import configfile


def load(path: Path, own: ResourceSettings | None = None) -> AppliedFields:
    """Read a file. Raises ``ConfigError``: file, field, value and what is allowed."""
    return nvidia.taken(configfile.load(path, NvidiaConfig, nvidia.problems), own)


def parse(data: bytes, own: ResourceSettings | None = None, *, source: str) -> AppliedFields:
    """Read YAML or JSON, called ``source`` in messages. Raises ``ConfigError``."""
    return nvidia.taken(configfile.parse(data, NvidiaConfig, nvidia.problems, source=source), own)
