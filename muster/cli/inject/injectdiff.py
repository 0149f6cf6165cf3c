"""Two states of one document as a difference that people read.

Unlike in a plain diff each hunk starts with its field, and each entry of a flat list (variables,
tolerations, mounts) takes one line. The ledger is left out, because its content is printed beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

import yaml

from muster.injection.patching.pointers import Json
from muster.injection.patching.record import ANNOTATION

_CONTEXT = 1  # lines around each change
_FLAT = frozenset({
    "env", "envFrom", "volumeMounts", "volumes", "tolerations", "claims", "resourceClaims",
    "ports", "imagePullSecrets", "schedulingGates",
})  # fmt: skip
_KEY = re.compile(r"(?P<indent> *)(?P<item>- )?(?P<key>[^\s:{][^:]*):(?: |$)(?P<value>.*)")
Opcode = tuple[str, int, int, int, int]  # of difflib: the operation, and the lines of both sides
_WIDTH = 10_000  # columns: no line is folded


class _Row(dict[str, Json]):
    """A map that is written on one line."""


class YamlDumper(yaml.SafeDumper):
    """Writes a ``_Row`` on one line, and text of several lines as a block."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


YamlDumper.add_representer(str, _text)
YamlDumper.add_representer(
    _Row,
    lambda dumper, row: dumper.represent_mapping("tag:yaml.org,2002:map", row, flow_style=True),
)


def difference(before: Json, after: Json) -> Iterator[str]:
    """Yield lines that start with ``@`` (a field), `` ``, ``-`` or ``+``."""
    old, new = _lines(before), _lines(after)
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT):
        first = group[0] if group[0][0] != "equal" else group[1]
        yield f"@ {_field(new, first[3])}"
        yield from _hunk(group, old, new)


def _hunk(group: list[Opcode], old: list[str], new: list[str]) -> Iterator[str]:
    marked = []
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            marked += [(" ", line) for line in old[i1:i2]]
        else:
            marked += [("-", line) for line in old[i1:i2]] + [("+", line) for line in new[j1:j2]]
    if marked[-1][0] == " " and _indent(marked[-1][1]) < min(
        _indent(line) for mark, line in marked if mark != " "
    ):
        marked.pop()  # the lines after it belong to another field
    common = min(_indent(line) for _, line in marked)
    yield from (f"{mark} {line[common:]}" for mark, line in marked)


def _lines(document: Json) -> list[str]:
    text = yaml.dump(
        _rows(_without_ledger(document)),
        Dumper=YamlDumper, sort_keys=False, default_flow_style=False, width=_WIDTH,
    )  # fmt: skip
    return str(text).splitlines()


def _rows(document: Json, key: str = "") -> Json:
    if isinstance(document, list):
        if key in _FLAT:
            return [_Row(item) if isinstance(item, dict) else item for item in document]
        return [_rows(item) for item in document]
    if isinstance(document, dict):
        return {name: _rows(value, name) for name, value in document.items()}
    return document


def _without_ledger(document: Json) -> Json:
    """Return the document without the ledger and maps that are empty without it."""
    if isinstance(document, list):
        return [_without_ledger(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: left
        for key, value in document.items()
        if key != ANNOTATION and ((left := _without_ledger(value)) != {} or value == {})
    }


def _field(lines: list[str], number: int) -> str:
    """Return the path of the map or list that contains a line, with names of list items.

    The depth of a line is its indentation; a list item is one deeper than its dash, its keys two.
    """
    found: list[str] = []
    depth = _depth(lines[number]) if number < len(lines) else 0
    for at in range(min(number, len(lines)) - 1, -1, -1):
        match = _KEY.match(lines[at])
        if match is None or depth == 0:
            continue
        indent = len(match["indent"])
        if match["item"]:
            if indent + 2 < depth and not match["value"]:
                found.append(f".{match['key']}")
            if indent + 1 < depth:
                found.append(f"[{_item(lines, at)}]")
                depth = indent + 1
        elif indent < depth:
            found.append(f".{match['key']}")
            depth = indent
    return "".join(reversed(found)).removeprefix(".") or "(top)"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _depth(line: str) -> int:
    indent = _indent(line)
    return indent + 1 if line.lstrip(" ").startswith("- ") else indent


def _item(lines: list[str], at: int) -> str:
    """Return the name of the list item that begins on a line, else its first key."""
    inside = _depth(lines[at]) + 1
    for line in lines[at:]:
        match = _KEY.match(line)
        if match is None:
            continue
        depth = len(match["indent"]) + (2 if match["item"] else 0)
        if line is not lines[at] and (depth < inside or (match["item"] and depth == inside)):
            break
        if match["key"] in ("name", "groupName") and depth == inside:
            return match["value"]
    return "…"
