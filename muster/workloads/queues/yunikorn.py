"""YuniKorn's queues: the text ``queues.yaml`` of the ConfigMap ``yunikorn-configs``.

::

    root              yunikorn/root: the cluster, there whether it is written or not
    ├── default       gangs that name no queue, where it exists
    └── research
        └── vision    yunikorn/root.research.vision, named root.research.vision or ROOT.…

Only the partition ``default`` exists in Kubernetes (docs/user_guide/queue_config.md). A queue with
queues below it, or ``parent: true``, holds no gangs.

**Numbers.** ``guaranteed`` can be taken back, ``max`` is the most; what ``max`` does not name is
unlimited, and 0 forbids it, unless all of it is 0 (queue_config.md, Resources). ``vcore`` is CPU. A
parent's numbers contain its children's.

**Names.** They begin with ``root.``; else they are those of a queue just below the root
(pkg/scheduler/placement/provided_rule.go). Capital and small letters are the same.

**Wrong texts.** A text that is no YAML describes no queue; whoever reads it may keep what the one
before it described. A wrong value closes the queue that it stands in, with those below.
"""

import re
from dataclasses import dataclass, field
from typing import Final

import msgspec

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.preemptionpolicy import PreemptionPolicy
from muster.cluster.quota.queuespec import QueueSpec, ShareFunction
from muster.kube import quantity
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.yunikornpolicy import (
    DEFAULT_PREEMPTION,
    PREEMPTION_DELAY,
    PREEMPTION_POLICY,
    PREEMPTION_WORDS,
    PRIORITY_POLICY,
    yunikorn_preemption,
)
from muster.workloads.queues.reading import QueueAlias, QueueReading, queue_name, whole_cluster
from muster.workloads.queues.yamltext import YamlError, YamlNode, parse

DIALECT: Final = "yunikorn"
CONFIG_MAP: Final = "yunikorn-configs"
CONFIG_KEY: Final = "queues.yaml"
ROOT: Final = "root"
DEFAULT_QUEUE: Final = "root.default"
DEFAULT_PARTITION: Final = "default"

_VCORE: Final = "vcore"
_LONGEST_NAME: Final = 64
_NAME_CHARACTERS: Final = frozenset("_:#/@-")
_INT32: Final = 2**31
_NUMBER: Final = re.compile("[+-]?[0-9]{1,10}")
_SORTS: Final = ("fifo", "fair", "stateaware")
_OFFSET: Final = "priority.offset"
_UNKNOWN: Final = "no field that Muster knows"


class _Conf(msgspec.Struct, frozen=True, kw_only=True):
    """Base of what ``queues.yaml`` consists of: names are in small letters."""


class YuniKornResources(_Conf, frozen=True):
    """``resources`` of a queue."""

    guaranteed: dict[str, str] = msgspec.field(default_factory=dict)
    max: dict[str, str] = msgspec.field(default_factory=dict)


class YuniKornQueue(_Conf, frozen=True):
    """A queue without those below it."""

    name: str = ""
    parent: bool = False
    resources: YuniKornResources = YuniKornResources()
    maxapplications: int = 0
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    adminacl: str = ""
    submitacl: str = ""
    childtemplate: dict[str, object] = msgspec.field(default_factory=dict)
    limits: list[object] = msgspec.field(default_factory=list)


class PlacementRule(_Conf, frozen=True):
    """What decides about the queue of a gang."""

    name: str = ""
    create: bool = False
    filter: dict[str, object] = msgspec.field(default_factory=dict)
    parent: dict[str, object] = msgspec.field(default_factory=dict)


def queues_yaml(text: str, since: float = 0.0) -> QueueReading:
    """Return what the text says; ``since``: when its ConfigMap was created."""
    walk = _Walk()
    try:
        walk.document(parse(text))
    except YamlError as error:
        walk.findings.problem(f"{CONFIG_KEY}: {error}")
    return QueueReading(
        specs=tuple(walk.specs),
        aliases=tuple(walk.aliases),
        problems=tuple(walk.findings.problems),
        unobeyed=tuple(walk.findings.unobeyed),
        since=since,
    )


@dataclass(slots=True)
class _Walk:
    """A walk over the text: partitions, then queues from the root down."""

    specs: list[QueueSpec] = field(default_factory=list)
    aliases: list[QueueAlias] = field(default_factory=list)
    findings: QueueFindings = field(default_factory=QueueFindings)

    def document(self, node: YamlNode) -> None:
        """Read all partitions; the second of a name is a problem."""
        if node.value is None:
            return
        partitions = node.get("partitions")
        if partitions is None or not isinstance(partitions.value, list):
            at = partitions or node
            self.findings.wrong(f"{_line(at)}: partitions", _written(at), "a list of partitions")
            return
        seen: set[str] = set()
        for one in partitions.items():
            name = _text(one, "name").lower() or DEFAULT_PARTITION
            if name in seen:
                allowed = "a name that no other partition has"
                self.findings.wrong(f"{_line(one)}: partitions.name", name, allowed)
            elif name != DEFAULT_PARTITION:
                why = f"Kubernetes has one partition, {DEFAULT_PARTITION}; its queues are left out"
                self.findings.ignored(f"{_line(one)}: partition {name}", why)
            else:
                self._partition(one)
            seen.add(name)

    def _partition(self, node: YamlNode) -> None:
        queues = node.get("queues")
        if queues is None or not isinstance(queues.value, list):
            at = queues or node
            self.findings.wrong(f"{_line(at)}: queues", _written(at), "a list of queues")
            return
        for name in node.value if isinstance(node.value, dict) else ():
            if name not in ("name", "queues", "placementrules"):
                why = "queues are all that is read of a partition"
                self.findings.ignored(f"{_line(node)}: {name}", why)
        rules = node.get("placementrules")
        for rule in () if rules is None else rules.items():
            self._rule(rule)
        tops = queues.items()
        if len(tops) == 1 and _text(tops[0], "name").lower() == ROOT:
            self._queue(tops[0], (), DEFAULT_PREEMPTION)
        else:
            root = queue_name(DIALECT, ROOT)
            self.specs.append(whole_cluster(root, ShareFunction.GUARANTEED, DEFAULT_PREEMPTION))
            self._below(tops, (ROOT,), DEFAULT_PREEMPTION)

    def _rule(self, node: YamlNode) -> None:
        path = f"{_line(node)}: placementrules"
        try:
            rule = msgspec.convert(node.plain(), PlacementRule, strict=False)
        except msgspec.ValidationError as error:
            self.findings.wrong(path, _written(node), str(error))
            return
        if rule.name.lower() != "provided":
            why = f"{rule.name}: a gang has the queue that it names, else {DEFAULT_QUEUE}"
            self.findings.ignored(path, why)
        elif rule.create or rule.filter or rule.parent:
            why = "provided: it has no filter and no parent, and makes no queues"
            self.findings.ignored(path, why)

    def _below(
        self, nodes: list[YamlNode], parent: tuple[str, ...], above: PreemptionPolicy
    ) -> None:
        """Read the queues below one; of two of a name the first counts."""
        seen: set[str] = set()
        for node in nodes:
            name = _text(node, "name").lower()
            path = f"{_line(node)}: {'.'.join(parent)}.queues.name"
            if not _is_name(name):
                allowed = f"1 to {_LONGEST_NAME} letters, digits, or one of _ : # / @ -"
                self.findings.wrong(path, name, allowed)
            elif name in seen:
                self.findings.wrong(path, name, "a name that no other queue beside it has")
            else:
                self._queue(node, parent, above)
            seen.add(name)

    def _queue(self, node: YamlNode, parent: tuple[str, ...], above: PreemptionPolicy) -> None:
        """Read a queue and those below it."""
        path = (*parent, _text(node, "name").lower())
        queue, found = _Queue(".".join(path), node), node.get("queues")
        children = [] if found is None else found.items()
        if found is not None and not isinstance(found.value, list):
            queue.findings.wrong(f"{queue.at}.queues", _written(found), "a list of queues")
        spec = queue.spec(".".join(parent), above)
        self.specs.append(spec)
        if not (children or queue.conf.parent or not parent):
            self.aliases += _aliases(path)
        self.findings.problems += queue.findings.problems
        self.findings.unobeyed += queue.findings.unobeyed
        self._below(children, path, spec.preemption)


class _Queue:
    """One queue, read by itself: what is wrong with it closes it."""

    def __init__(self, path: str, node: YamlNode) -> None:
        self.path, self.findings = path, QueueFindings()
        self.at = f"{_line(node)}: {path}"
        self.conf = self._conf(node)

    def _conf(self, node: YamlNode) -> YuniKornQueue:
        """Return its fields; the defaults where one of them has a wrong type."""
        plain = node.without("queues").plain()
        own = plain if isinstance(plain, dict) else {}
        for name in own:
            if name not in YuniKornQueue.__struct_fields__:
                self.findings.ignored(f"{self.at}.{name}", _UNKNOWN)
        try:
            return msgspec.convert(own, YuniKornQueue, strict=False)
        except msgspec.ValidationError as error:
            self.findings.problem(f"{self.at}: {error}")
            return YuniKornQueue()

    def spec(self, parent: str, above: PreemptionPolicy) -> QueueSpec:
        """Return the queue; ``parent`` is "" for the root, ``above`` the policy of the parent."""
        quotas, priority, properties = self._quotas(), self._priority(), self.conf.properties
        policy = yunikorn_preemption(self.at, properties, priority, above, self.findings)
        self._properties()
        self._unobeyed()
        if not parent and (self.conf.resources.guaranteed or self.conf.resources.max):
            allowed = "nothing: the root has what the nodes have"
            self.findings.wrong(f"{self.at}.resources", "guaranteed or max", allowed)
        return QueueSpec(
            queue_name(DIALECT, self.path),
            queue_name(DIALECT, parent) if parent else None,
            quotas if parent else {},
            priority=priority,
            is_whole=True,
            is_open=not self.findings.problems,
            is_cluster=not parent,
            shares=None if parent else ShareFunction.GUARANTEED,
            preemption=policy,
        )

    def _quotas(self) -> dict[Cell, Quota]:
        guaranteed, limits = self.conf.resources.guaranteed, self.conf.resources.max
        names = dict.fromkeys([*guaranteed, *limits])
        found = {Cell("", _resource(name)): self._quota(name) for name in names}
        if limits and all(found[Cell("", _resource(name))].limit == 0 for name in limits):
            self.findings.ignored(f"{self.at}.resources.max", "all of it is 0: there is no limit")
            found = {cell: Quota(quota.entitled) for cell, quota in found.items()}
        for cell, quota in found.items():
            if quota.entitled > quota.limit:
                path = f"{self.at}.resources.guaranteed[{cell.resource}]"
                allowed = f"at most what max says, {quota.limit}"
                self.findings.wrong(path, quota.entitled, allowed)
        return found

    def _quota(self, name: str) -> Quota:
        resources, resource = self.conf.resources, _resource(name)
        path = f"{self.at}.resources"
        guaranteed, limit = resources.guaranteed.get(name), resources.max.get(name)
        return Quota(
            self.findings.amount(f"{path}.guaranteed[{name}]", resource, guaranteed, 0),
            limit=self.findings.amount(f"{path}.max[{name}]", resource, limit, UNLIMITED),
        )

    def _priority(self) -> int:
        """Return the offset: exact for a fenced queue, else all that is known of it."""
        path, written = f"{self.at}.properties[{_OFFSET}]", self.conf.properties.get(_OFFSET, "0")
        offset = _whole(written)
        if offset is None:
            allowed = f"a whole number from {-_INT32} to {_INT32 - 1}"
            self.findings.wrong(path, written, allowed)
            return 0
        if offset and self.conf.properties.get(PRIORITY_POLICY) != "fence":
            why = f"{offset}: queues are compared by it alone, whatever priority their gangs have"
            self.findings.ignored(path, why)
        return offset

    def _properties(self) -> None:
        """Check the words of all properties, and name those that are not obeyed."""
        for name, word in self.conf.properties.items():
            path, allowed = f"{self.at}.properties[{name}]", _WORDS.get(name)
            if allowed is not None:
                self.findings.one_of(path, word.lower(), allowed)
            if name not in (*_WORDS, _OFFSET, PREEMPTION_DELAY):
                self.findings.ignored(path, _PROPERTIES.get(name, "no property that Muster knows"))
            elif (name, word.lower()) in _WORDS_UNOBEYED:
                self.findings.ignored(path, _WORDS_UNOBEYED[name, word.lower()])

    def _unobeyed(self) -> None:
        conf = self.conf
        for name, is_written, why in (
            ("maxapplications", conf.maxapplications, "gangs are not counted, only what they use"),
            ("adminacl", conf.adminacl, "Muster does nothing for an administrator of a queue"),
            ("submitacl", conf.submitacl.strip() not in ("", "*"), "everybody may submit"),
            ("childtemplate", conf.childtemplate, "no queues are made"),
            ("limits", conf.limits, "users and groups have no limits of their own"),
        ):
            if is_written:
                self.findings.ignored(f"{self.at}.{name}", why)


_WORDS: Final = {
    "application.sort.policy": _SORTS,
    "application.sort.priority": ("enabled", "disabled"),
    PRIORITY_POLICY: ("default", "fence"),
    PREEMPTION_POLICY: PREEMPTION_WORDS,
}
_WORDS_UNOBEYED: Final = {
    ("application.sort.policy", "fair"): "fair: gangs of a queue go by priority and age",
    ("application.sort.priority", "disabled"): "disabled: priority goes before age",
}
_PROPERTIES: Final = {
    "quota.preemption.delay": "what exceeds a lowered max runs to its end",
}


def _aliases(path: tuple[str, ...]) -> list[QueueAlias]:
    """Return how gangs name a queue: in full, just below the root without it, or not at all."""
    full = ".".join(path)
    texts = [full, path[1]] if len(path) == 2 else [full]  # noqa: PLR2004  root and one below it
    if full == DEFAULT_QUEUE:
        texts.append("")
    name = queue_name(DIALECT, full)
    return [QueueAlias(text, name, ignores_case=True) for text in texts]


def _resource(name: str) -> str:
    return quantity.CPU if name == _VCORE else name


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and all(
        (c.isascii() and c.isalnum()) or c in _NAME_CHARACTERS for c in name
    )


def _whole(text: str) -> int | None:
    """Return a whole number of 32 bits, ``None`` if the text is none."""
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if -_INT32 <= int(text) < _INT32 else None


def _text(node: YamlNode, key: str) -> str:
    found = node.get(key)
    return found.value if found is not None and isinstance(found.value, str) else ""


def _line(node: YamlNode) -> str:
    return f"{CONFIG_KEY}: line {node.line}"


def _written(node: YamlNode) -> str:
    """Return a scalar as it is written, else what it is."""
    if isinstance(node.value, str):
        return node.value
    return "a list" if isinstance(node.value, list) else "a map"
