"""Which of several configurations a node uses: by its label, as with NVIDIA's config manager.

``nvidia.com/device-plugin.config: NAME`` on the Node names one (NVIDIA/k8s-device-plugin README,
"Updating Per-Node Configuration With a Node Label"). Without the label it is the operator's
default, else the only configuration that exists, else none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LABEL: Final = "nvidia.com/device-plugin.config"


@dataclass(frozen=True, slots=True)
class ConfigurationChoice:
    """The configuration that a node uses."""

    #: empty: the plugin's own settings
    name: str = ""
    #: what an operator must correct; "" for nothing
    problem: str = ""


def choose(
    configs: Iterable[str], label: str, default: str = "", current: str = ""
) -> ConfigurationChoice:
    """Return the configuration of a node.

    ``current``: the one that it uses now. It stays where the label names an unknown one: a
    misspelt label must not take devices from pods.
    """
    known = sorted(configs)
    if label:
        if label in known:
            return ConfigurationChoice(label)
        text = f"label {LABEL}: {label!r} is no configuration; allowed are {', '.join(known)}"
        return ConfigurationChoice(
            current, f"{text}. {f'{current} stays' if current else 'None is taken'}"
        )
    if default:
        if default in known:
            return ConfigurationChoice(default)
        allowed = ", ".join(known)
        return ConfigurationChoice(
            current, f"default configuration {default!r}: allowed are {allowed}"
        )
    return ConfigurationChoice(known[0] if len(known) == 1 else "")
