"""Where queues are described in a text: the section ``yunikornQueues`` (docs/queues.md)."""

import re
from typing import Final

import msgspec

from muster.workloads.queues.yunikorn import CONFIG_KEY, CONFIG_MAP

_PART: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMESPACE: Final = re.compile(_PART)
_NAME: Final = re.compile(rf"{_PART}(\.{_PART})*")
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")


class YuniKornQueuesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The one ConfigMap that is watched for YuniKorn's queues."""

    #: its namespace, that of YuniKorn's scheduler
    namespace: str
    #: its name
    name: str = CONFIG_MAP
    #: the key of the text in it; with ``policyGroup`` of YuniKorn it is POLICYGROUP.yaml
    key: str = CONFIG_KEY


def problems(config: YuniKornQueuesConfig | None) -> list[str]:
    """Return one line per invalid value."""
    if config is None:
        return []
    checked = (
        ("namespace", config.namespace, _NAMESPACE, "names such as yunikorn"),
        ("name", config.name, _NAME, f"names such as {CONFIG_MAP}"),
        ("key", config.key, _KEY, f"keys such as {CONFIG_KEY}"),
    )
    return [
        f"yunikornQueues.{field}: {value!r} is not allowed; allowed are {allowed}"
        for field, value, form, allowed in checked
        if not form.fullmatch(value)
    ]
