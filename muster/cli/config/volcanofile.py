"""A configuration of Volcano's scheduler: its settings, and where each stands.

Source of the format: pkg/scheduler/conf/scheduler_conf.go of volcano-sh/volcano. The file is
``volcano-scheduler.conf``, or a ConfigMap that has it under that key. Numbers and switches may
be quoted: early versions of Volcano read arguments as texts, later ones as they are written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from muster.workloads.queues.findings import shown
from muster.workloads.queues.yamltext import YamlError, YamlNode, parse

KEY: Final = "volcano-scheduler.conf"
_WANTED: Final = f"a map with actions and tiers, or a ConfigMap that has it under {KEY}"


@dataclass(frozen=True, slots=True)
class Setting:
    """One written value."""

    #: Its path, for instance ``tiers[0].plugins[1].name``.
    path: str
    #: What is written, with its line.
    node: YamlNode

    def entries(self) -> Iterator[tuple[str, "Setting"]]:
        """Yield the keys of a map and their settings; nothing where it is no map."""
        if isinstance(self.node.value, dict):
            for key, node in self.node.value.items():
                yield key, Setting(f"{self.path}{_step(key, first=not self.path)}", node)

    def items(self) -> Iterator["Setting"]:
        """Yield the settings of a list; nothing where it is no list."""
        for index, node in enumerate(self.node.items()):
            yield Setting(f"{self.path}[{index}]", node)

    @property
    def text(self) -> str | None:
        """The scalar; None for null, a list or a map."""
        return self.node.value if isinstance(self.node.value, str) else None

    @property
    def written(self) -> str:
        """The value as messages repeat it."""
        if self.node.value is None:
            return "null"
        return f'"{shown(self.text)}"' if self.text is not None else self.kind

    @property
    def kind(self) -> str:
        """What sort of value it is."""
        value = self.node.value
        sorts = {dict: "a map", list: "a list", str: "a text"}
        return "null" if value is None else sorts[type(value)]


@dataclass(frozen=True, slots=True)
class VolcanoFile:
    """A file that was read."""

    #: What messages call it.
    source: str
    #: The map at its top.
    top: Setting


def read(data: bytes, source: str) -> VolcanoFile:
    """Return the configuration in a file; ``source`` is its name.

    Raises ``ValueError`` for a file that is no such configuration, with what is allowed.
    """
    try:
        root = _parsed(data.decode("utf-8-sig"), source)
    except UnicodeDecodeError as error:
        text = f"{source}: is not UTF-8 (byte {error.start}); write {_WANTED}"
        raise ValueError(text) from error
    if root.get("kind") is None:
        return VolcanoFile(source, _checked(root, source))
    inner = _in_configmap(root, source)
    source = f"{source}: data[{KEY}]"
    return VolcanoFile(source, _checked(_parsed(inner, source), source))


def _parsed(text: str, source: str) -> YamlNode:
    try:
        return parse(text)
    except YamlError as error:
        raise ValueError(f"{source}: is not YAML: {error}; write {_WANTED}") from error


def _in_configmap(root: YamlNode, source: str) -> str:
    kind, data = root.get("kind"), root.get("data")
    if kind is None or kind.value != "ConfigMap":
        found = "a map or list" if kind is None or not isinstance(kind.value, str) else kind.value
        raise ValueError(f"{source}: kind: {shown(found)} is not allowed; write {_WANTED}")
    text = data.get(KEY) if data else None
    if text is None or not isinstance(text.value, str):
        keys = ", ".join(data.value) if data and isinstance(data.value, dict) else "no keys"
        raise ValueError(
            f"{source}: data: has no text {KEY}, only {shown(keys)}; store the text "
            "with actions and tiers in a file, and name that"
        )
    return text.value


def _checked(root: YamlNode, source: str) -> Setting:
    """Return the top of a configuration. Raises ``ValueError`` if it cannot be one."""
    top = Setting("", root)
    written = {key: setting for key, setting in top.entries() if setting.node.value is not None}
    if not written.keys() & {"actions", "tiers"}:
        found = ", ".join(key for key, _ in top.entries()) or top.kind
        raise ValueError(
            f"{source}: has neither actions nor tiers: {shown(found)}; write {_WANTED}"
        )
    for key, kind in (("actions", "a text"), ("tiers", "a list")):
        if key in written and (found := written[key].kind) != kind:
            line = written[key].node.line
            raise ValueError(f"{source}: line {line}: {key}: is {found}; it must be {kind}")
    return top


def _step(key: str, *, first: bool) -> str:
    """Return a key as part of a path."""
    if key.isidentifier():
        return key if first else f".{key}"
    return f"[{shown(key)}]"
