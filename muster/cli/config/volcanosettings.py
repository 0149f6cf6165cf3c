"""What Muster makes of a configuration of Volcano: its own, and a line for everything else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from muster.cli.config import volcanoplugins, volcanoscoring
from muster.cli.config.volcanofile import Setting, VolcanoFile
from muster.cli.config.volcanoplugins import EVICTING, NUMBER, SWITCH, SWITCHES, TEXT, Kind
from muster.workloads.queues.findings import shown

_TOP: Final = ("actions", "tiers", "configurations", "metrics")
_NO_ACTIONS: Final = "not used: Muster has no actions, and so no arguments of actions"
_OWN_ORDER: Final = "Muster's own order of nodes is kept (scoring)"


@dataclass(frozen=True, slots=True)
class Translation:
    """What was made of a file."""

    #: The extender's configuration.
    configuration: dict[str, object]
    #: One line per setting that is not in it, with its place.
    lines: tuple[str, ...]


def translated(file: VolcanoFile) -> Translation:
    """Return the extender's configuration, and what is said of all that is not in it."""
    reading = _Reading(file.source)
    reading.top(file.top)
    made: dict[str, object] = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "ExtenderConfiguration",
    }
    if scoring := reading.scoring():
        made["scoring"] = scoring
    if reading.evicting:
        done = {action: action in reading.evicting for action in EVICTING}
        made["makingRoom"] = {"enabled": True, "queues": ["volcano"], "volcano": done}
    return Translation(made, reading.lines())


@dataclass(slots=True)
class _Weigher:
    """A plugin whose arguments are weights."""

    name: str
    setting: Setting
    arguments: Setting | None
    is_off: bool


class _Reading:
    """One pass over a file."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._weighers: list[_Weigher] = []
        self._said: list[tuple[int, str]] = []
        #: actions that make gangs give way
        self.evicting: set[str] = set()

    def lines(self) -> tuple[str, ...]:
        """Return what was said, in the order of the file."""
        return tuple(text for _, text in sorted(self._said, key=lambda said: said[0]))

    def _say(self, setting: Setting, text: str) -> None:
        line = setting.node.line
        self._said.append((line, f"{self._source}: line {line}: {setting.path}: {text}"))

    def _unknown(self, setting: Setting, what: str, allowed: Iterable[str], remedy: str) -> None:
        known = ", ".join(sorted(allowed)) or "none"
        self._say(setting, f"{what} is not known; allowed: {known}; {remedy}")

    def _is(self, setting: Setting, kind: Kind, otherwise: str) -> bool:
        """Return whether a value is of its kind, and say so if not."""
        if setting.text is not None and kind.pattern.fullmatch(setting.text):
            return True
        self._say(
            setting, f"{setting.written} is not allowed; it must be {kind.words}; {otherwise}"
        )
        return False

    # --- the file ---------------------------------------------------------------------------

    def top(self, top: Setting) -> None:
        """Read the whole file."""
        for key, setting in top.entries():
            if key == "actions":
                self._actions(setting)
            elif key == "tiers":
                for tier in setting.items():
                    self._tier(tier)
            elif key == "configurations":
                self._configurations(setting)
            elif key == "metrics":
                self._say(setting, "not used: Muster's placement does not look at such metrics")
            else:
                self._unknown(setting, "the key", _TOP, "correct or remove it")

    def _actions(self, setting: Setting) -> None:
        for name in (setting.text or "").split(","):
            action = name.strip()
            why = volcanoplugins.ACTIONS.get(action)
            if action in EVICTING:
                self.evicting.add(action)
            elif why is not None:
                self._say(setting, f"{action}: {why}")
            elif setting.text:
                what = f'action "{shown(action)}"'
                self._unknown(setting, what, volcanoplugins.ACTIONS, "correct or remove it")

    def _configurations(self, setting: Setting) -> None:
        self._say(setting, _NO_ACTIONS)
        for one in setting.items():
            self._left_out([entry for _, entry in one.entries()], _NO_ACTIONS)

    def _tier(self, tier: Setting) -> None:
        entries = dict(tier.entries())
        if not entries:
            self._say(tier, f"is {tier.kind}; it must be a map with plugins; it is left out")
        for key, setting in entries.items():
            if key != "plugins":
                self._unknown(setting, "the key", ["plugins"], "correct or remove it")
            elif not isinstance(setting.node.value, list):
                self._say(setting, f"is {setting.kind}; it must be a list; it is left out")
            else:
                for plugin in setting.items():
                    self._plugin(plugin)

    # --- a plugin ---------------------------------------------------------------------------

    def _plugin(self, setting: Setting) -> None:
        entries = dict(setting.entries())
        named = entries.pop("name", None)
        if named is None:
            self._say(setting, "has no name; it must be a map with a name; it is left out")
            return self._left_out(entries.values(), "left out like its plugin")
        known = volcanoplugins.PLUGINS.get(named.text or "")
        if known is None:
            remedy = "correct or remove it; its arguments and switches are left out"
            what = f"plugin {named.written}"
            self._unknown(named, what, volcanoplugins.PLUGINS, remedy)
            return self._left_out(entries.values(), "left out like its plugin")
        name = str(named.text)
        arguments = entries.pop("arguments", None)
        if known.why:
            self._say(named, f"{name}: {known.why}")
            self._arguments(known, arguments)
        else:
            switch = entries.get(volcanoplugins.NODE_ORDER)
            is_off = switch is not None and volcanoplugins.is_false(switch.text)
            self._weighers.append(_Weigher(name, named, arguments, is_off))
        for key, one in entries.items():
            self._switch(key, one)
        return None

    def _left_out(self, settings: Iterable[Setting], why: str) -> None:
        for setting in settings:
            for _, one in setting.entries():
                self._say(one, why)
            if not isinstance(setting.node.value, dict):
                self._say(setting, why)

    def _switch(self, key: str, setting: Setting) -> None:
        if key not in SWITCHES:
            allowed = ("name", "arguments", *SWITCHES)
            self._unknown(setting, "the key", allowed, "correct or remove it")
        elif self._is(setting, SWITCH, "it is left out"):
            off = key == volcanoplugins.NODE_ORDER and volcanoplugins.is_false(setting.text)
            weighs = "obeyed for the weights of nodeorder and binpack, which count 0"
            self._say(setting, weighs if off else "not used: Muster has no such switch")

    def _arguments(self, known: volcanoplugins.VolcanoPlugin, arguments: Setting | None) -> None:
        for key, setting in self._entries(arguments):
            if known.takes_any:
                self._say(setting, known.why)
            else:
                self._argument(known, key, setting, known.arguments)

    def _entries(self, arguments: Setting | None) -> Iterable[tuple[str, Setting]]:
        if arguments is None or arguments.node.value is None:
            return ()
        if not isinstance(arguments.node.value, dict):
            text = f"is {arguments.kind}; it must be a map of arguments; it is left out"
            self._say(arguments, text)
        return arguments.entries()

    def _argument(
        self,
        known: volcanoplugins.VolcanoPlugin,
        key: str,
        setting: Setting,
        allowed: Iterable[str],
    ) -> None:
        argument = known.arguments.get(key)
        if argument is None:
            self._unknown(setting, "the argument", allowed, "correct or remove it")
        elif self._is(setting, argument.kind, "Muster does not use it"):
            self._say(setting, argument.why)

    # --- weights ----------------------------------------------------------------------------

    def scoring(self) -> dict[str, object]:
        """Return the section ``scoring``; of plugins listed twice the last counts."""
        last = {weigher.name: weigher for weigher in self._weighers}
        given: dict[str, dict[str, float]] = {}
        for weigher in self._weighers:
            if weigher is not last[weigher.name]:
                where = last[weigher.name].setting.path
                self._not_counted(weigher, f"left out: {where} is the same plugin, and the last")
            elif weigher.is_off:
                self._not_counted(weigher, "left out: enableNodeOrder is false")
            else:
                given[weigher.name] = self._weights(weigher)
        made = volcanoscoring.section(given)
        for name in given:
            self._summary(last[name], given, made)
        return made

    def _not_counted(self, weigher: _Weigher, why: str) -> None:
        self._say(weigher.setting, f"{weigher.name}: {why}")
        for _, setting in self._entries(weigher.arguments):
            self._say(setting, why)

    def _weights(self, weigher: _Weigher) -> dict[str, float]:
        """Return the weights that are given to a plugin."""
        known = volcanoplugins.PLUGINS[weigher.name]
        mine = volcanoscoring.DEFAULTS[weigher.name]
        allowed = [*mine, *known.arguments]
        if weigher.name == "binpack":
            allowed += [volcanoscoring.RESOURCES, f"{volcanoscoring.OF_RESOURCE}NAME"]
        entries = dict(self._entries(weigher.arguments))
        counted = self._resources(weigher.name, entries)
        weights: dict[str, float] = {}
        for key, setting in entries.items():
            if weigher.name == "binpack" and key.startswith(volcanoscoring.OF_RESOURCE):
                self._of_resource(key, setting, counted, weights)
            elif key in mine:
                self._weigh(key, setting, weights)
            elif key != volcanoscoring.RESOURCES or weigher.name != "binpack":
                self._argument(known, key, setting, allowed)
        if volcanoscoring.GPU in counted:
            weights.setdefault(volcanoscoring.OF_GPU, 1.0)
        return weights

    def _resources(self, plugin: str, entries: dict[str, Setting]) -> list[str]:
        """Return the resources that ``binpack`` counts beside CPU and memory."""
        setting = entries.get(volcanoscoring.RESOURCES) if plugin == "binpack" else None
        if setting is None or not self._is(setting, TEXT, "it is left out"):
            return []
        names = volcanoscoring.named_resources(setting.text or "")
        for name in names or ["no resource"]:
            if name != volcanoscoring.GPU:
                known = f"cpu, memory and {volcanoscoring.GPU}"
                self._say(setting, f"{shown(name)}: not used: Muster's binpack counts {known}")
        return names

    def _of_resource(
        self, key: str, setting: Setting, counted: list[str], weights: dict[str, float]
    ) -> None:
        name = key.removeprefix(volcanoscoring.OF_RESOURCE)
        if name not in counted:
            text = f"{volcanoscoring.RESOURCES} does not name it, so Volcano does not use it either"
            self._say(setting, f"not used: {text}; add it there to have it counted")
        elif key != volcanoscoring.OF_GPU:
            self._say(setting, "not used, like its resource")
        else:
            self._weigh(key, setting, weights)

    def _weigh(self, key: str, setting: Setting, weights: dict[str, float]) -> None:
        otherwise = "Volcano's default is taken"
        if not self._is(setting, NUMBER, otherwise):
            return
        weight = float(setting.text or 0)
        if weight > volcanoscoring.HIGHEST:
            text = f"{setting.written} is not allowed; it must be 0 to {volcanoscoring.HIGHEST}"
            self._say(setting, f"{text}: divide all weights by the same number; {otherwise}")
        else:
            weights[key] = weight

    def _summary(
        self, weigher: _Weigher, given: volcanoscoring.Given, made: dict[str, object]
    ) -> None:
        """Say which weights nobody gave, and which are given in vain."""
        name = weigher.name
        taken = volcanoscoring.defaults_taken(given, name)
        if made and taken:
            listed = ", ".join(f"{key} {value}" for key, value in taken.items())
            self._say(
                weigher.setting, f"{name}: not given, and written as Volcano has it: {listed}"
            )
        elif not made and given[name]:
            self._not_counted(weigher, f"left out: no weight is more than 0, so {_OWN_ORDER}")
        elif not made:
            self._say(weigher.setting, f"{name}: no weight is given: {_OWN_ORDER}")
