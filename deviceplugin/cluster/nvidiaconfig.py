"""Reading NVIDIA's configuration files (``deviceplugin.resources.nvidia`` says what they mean).

The pools of Mellanox/k8s-rdma-shared-dev-plugin need no reader: its ``configList`` is the list that
``resources.rdma`` takes (``deviceplugin.resources.settings``).
"""

from pathlib import Path
from typing import Final

import msgspec

from deviceplugin.resources import nvidia
from deviceplugin.resources.nvidia import AppliedFields, NvidiaConfig
from deviceplugin.resources.settings import ResourceSettings
from muster.observability import configfile
from muster.observability.configfile import ConfigError

_TIME_SLICING: Final = ("sharing", "timeSlicing")


def load(path: Path, own: ResourceSettings | None = None) -> AppliedFields:
    """Read a file. Raises ``ConfigError``: file, field, value and what is allowed."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    return parse(data, own, source=str(path))


def parse(data: bytes, own: ResourceSettings | None = None, *, source: str) -> AppliedFields:
    """Read YAML or JSON, called ``source`` in messages. Raises ``ConfigError``."""
    found = configfile.parse(_without_nulls(data), NvidiaConfig, nvidia.problems, source=source)
    return nvidia.taken(found, own)


def _without_nulls(data: bytes) -> bytes:
    """Return the text without fields that are null, as Go's JSON passes over them.

    So a block of which all lines are comments counts as left out. Upstream reads each item of a
    list and the block ``timeSlicing`` with code of its own (api/config/v1/replicas.go), where a
    null is a mistake; here, too. An empty file is a file without settings.
    """
    try:
        document: object = msgspec.yaml.decode(data)
    except msgspec.DecodeError:
        return data  # whoever parses it says what is wrong
    if document is None:
        return b"{}"
    return msgspec.yaml.encode(_pruned(document)) if isinstance(document, dict) else data


def _pruned(part: object, path: tuple[object, ...] = ()) -> object:
    if path == _TIME_SLICING and part is None:
        return {}
    if not isinstance(part, dict):
        return part
    pruned = {key: _pruned(value, (*path, key)) for key, value in part.items()}
    return {key: value for key, value in pruned.items() if value is not None}
