"""How `muster inject` shows what it did: manifests, or a diff with reasons."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import yaml
from rich.console import Console
from rich.text import Text

from cli.injecting import Changed, Outcome
from injection.manifests import Json
from injection.record import ANNOTATION

_CONTEXT = 2  # lines around each change
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def manifests(outcomes: Sequence[Outcome]) -> str:
    """Return the documents as they are afterwards."""
    return "---\n".join(_yaml(outcome.after) for outcome in outcomes)


def explained(outcomes: Sequence[Outcome], *, color: str) -> None:
    """Print what changes in each document and why."""
    forced = {"always": True, "never": False}.get(color)
    console = Console(
        highlight=False, soft_wrap=True, force_terminal=forced, no_color=forced is False
    )
    for number, outcome in enumerate(outcomes):
        if number:
            console.print()
        for line in _document(outcome):
            console.print(line)


def _document(outcome: Outcome) -> Iterator[Text]:
    yield Text(outcome.name, style="bold")
    if outcome.before == outcome.after:
        yield Text("  nothing is changed")
    for line in _diff(outcome):
        yield Text(f"  {line}", style=_STYLES.get(line[:1], ""))
    for changed in outcome.templates:
        yield from _reasons(changed)


def _diff(outcome: Outcome) -> Iterator[str]:
    """Yield the difference without the two lines of file names, and without the ledger."""
    before, after = (
        _yaml(_without_ledger(d)).splitlines() for d in (outcome.before, outcome.after)
    )
    lines = difflib.unified_diff(before, after, lineterm="", n=_CONTEXT)
    yield from list(lines)[2:]


def _reasons(changed: Changed) -> Iterator[Text]:
    """Yield who set what, and what the user wrote and keeps."""
    done, where = changed.injection, changed.template.where
    if where and (done.record.set or done.record.kept or done.warnings or done.refusals):
        yield Text(f"{where}", style="bold")
    for source, fields in done.record.set.items():
        yield Text(f"  set by {source}", style="green")
        yield from (Text(f"    {field}") for field in fields)
    if done.record.kept:
        yield Text("  yours, kept", style="yellow")
    for field, source in done.record.kept.items():
        yield Text(f"    {field}   {source} has another value")
    for refusal in done.refusals:
        yield Text(f"  refused: {refusal}", style="bold red")
    for warning in done.warnings:
        yield Text(f"  warning: {warning}", style="yellow")


def _without_ledger(document: Json) -> Json:
    """Return the document without the ledger, which says again what is printed below."""
    if isinstance(document, list):
        return [_without_ledger(item) for item in document]
    if not isinstance(document, dict):
        return document
    return {
        key: left
        for key, value in document.items()
        if key != ANNOTATION and ((left := _without_ledger(value)) != {} or value == {})
    }


def _yaml(document: Json) -> str:
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=False, width=100)
