"""A folder of NVIDIA's configuration files, one of which a node takes by its label.

::

    label of the Node ──┐
    files of the folder ┼─► choice.choose ──► the file ──► settings
    the one it has ─────┘          │             └─ broken: what was good stays
                                   └─ names none:   what it has stays

The folder is a ConfigMap as the kubelet mounts it: names that begin with a dot are its own. Looked
at again whenever somebody asks, so that an edited ConfigMap counts without a restart.
"""

from dataclasses import dataclass
from pathlib import Path

from deviceplugin.cluster import nvidiaconfig
from deviceplugin.resources import choice
from deviceplugin.resources.nvidia import AppliedFields
from deviceplugin.resources.settings import ResourceSettings
from muster.observability.configfile import ConfigError


@dataclass(frozen=True, slots=True)
class ChosenConfiguration:
    """What holds now. ``name``: of the file; empty: the plugin's own settings.

    ``problems``: what is to be told loudly, among it each field of the file without effect.
    """

    name: str
    taken: AppliedFields
    problems: tuple[str, ...] = ()


class NodeConfig:
    """The node's choice. ``default``: the file for nodes without the label."""

    def __init__(self, folder: Path, own: ResourceSettings, default: str = "") -> None:
        self._folder = folder
        self._own = own
        self._default = default
        self._last = ChosenConfiguration("", AppliedFields(own))

    def look(self, label: str) -> ChosenConfiguration:
        """Return what holds for a node with this value of the label (empty: without it)."""
        try:
            names = [entry.name for entry in self._folder.iterdir() if entry.name[0] != "."]
        except OSError as error:
            return self._stays(f"{self._folder}: cannot be read: {error.strerror}")
        chosen = choice.choose(names, label, self._default, self._last.name)
        if chosen.problem:
            return self._stays(chosen.problem)
        try:
            self._last = self._read(chosen.name)
        except ConfigError as error:
            return self._stays(str(error))
        return self._last

    def _read(self, name: str) -> ChosenConfiguration:
        if not name:
            return ChosenConfiguration("", AppliedFields(self._own))
        taken = nvidiaconfig.load(self._folder / name, self._own)
        return ChosenConfiguration(name, taken, tuple(f"{name}: {line}" for line in taken.ignored))

    def _stays(self, problem: str) -> ChosenConfiguration:
        return ChosenConfiguration(self._last.name, self._last.taken, (problem,))
