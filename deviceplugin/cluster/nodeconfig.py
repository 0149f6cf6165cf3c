"""A folder of NVIDIA's configuration files, one of which a node takes by its label.

::

    label of the Node ──┐
    files of the folder ┼─► choice.choose ──► the file ──► settings
    the present file ───┘          │             └─ broken: the last good settings stay
                                   └─ no such file: the present settings stay

The folder is a ConfigMap as the kubelet mounts it: names that begin with a dot are the kubelet's.
It is read again at each call, so that an edited ConfigMap has an effect without a restart.
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
    """The configuration that a node uses now."""

    #: of the file; empty: the plugin's own settings are used
    name: str
    #: the fields that have an effect
    taken: AppliedFields
    #: what an operator must know, such as each field of the file that has no effect
    problems: tuple[str, ...] = ()


class NodeConfig:
    """Chooses a node's configuration. ``default``: the file for nodes without the label."""

    def __init__(self, folder: Path, own: ResourceSettings, default: str = "") -> None:
        self._folder = folder
        self._own = own
        self._default = default
        self._last = ChosenConfiguration("", AppliedFields(own))

    def look(self, label: str) -> ChosenConfiguration:
        """Return the configuration for this value of the label; empty: the Node has no label."""
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
