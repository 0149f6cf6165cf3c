"""Tables of the extender's read-only API. It renders what comes: new fields show by themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table


def render(title: str, raw: bytes) -> None:
    """Print a JSON reply: lists of objects as tables, the rest as key and value."""
    console = Console()
    reply = json.loads(raw)
    if isinstance(reply, Mapping):
        scalars = {key: value for key, value in reply.items() if not _is_rows(value)}
        if scalars:
            console.print(_pairs(title, scalars))
        for key, value in reply.items():
            if _is_rows(value):
                console.print(_rows(key, value))
    else:
        console.print(_rows(title, reply))


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _pairs(title: str, pairs: Mapping[str, object]) -> Table:
    table = Table(title=title, show_header=False)
    for key, value in pairs.items():
        table.add_row(key, _cell(value))
    return table


def _rows(title: str, rows: Sequence[Mapping[str, object]]) -> Table:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*(_cell(row.get(column, "")) for column in columns))
    return table


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value)
