"""Which of several configurations a node takes: by its label, as with NVIDIA's config manager.

``nvidia.com/device-plugin.config: NAME`` on the Node names one (NVIDIA/k8s-device-plugin README,
"Updating Per-Node Configuration With a Node Label"). Without the label: the default that the
operator named; else the only one there is; else none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LABEL: Final = "nvidia.com/device-plugin.config"


@dataclass(frozen=True, slots=True)
class ConfigurationChoice:
    """The configuration to take; empty: the plugin's own. ``problem``: what to tell loudly."""

    name: str = ""
    problem: str = ""


def choose(
    configs: Iterable[str], label: str, default: str = "", current: str = ""
) -> ConfigurationChoice:
    """Return the configuration of a node.

    ``current``: the one it has. It stays when the label names none that is there: a misspelt
    label must not take devices from pods.
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
