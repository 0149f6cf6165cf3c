"""The output of `muster inject`: manifests, or a difference with reasons."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

import yaml
from rich.console import Console
from rich.text import Text

from muster.cli.inject.injectdiff import YamlDumper, difference
from muster.cli.inject.injecting import InjectedDocument
from muster.injection.patching.pointers import Json
from muster.injection.templates.completion import Completed
from muster.observability.printable import printable

_WIDTH = 96  # columns; the text before them fits on a terminal of 100
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_MESSAGES = {"refused": "bold red", "warning": "yellow", "skipped": "dim"}


def manifests(outcomes: Sequence[InjectedDocument]) -> str:
    """Return the changed documents."""
    return "---\n".join(_yaml(outcome.after) for outcome in outcomes)


def explained(outcomes: Sequence[InjectedDocument], *, color: str) -> None:
    """Print the changes of each document with their reasons, and a summary."""
    console = _console(color)
    for outcome in outcomes:
        for line in (*_document(outcome), *_message_lines(_skipped(outcome, outcomes))):
            console.print(line)
        console.print()
    console.print(_sum(outcomes))


def warned(outcomes: Sequence[InjectedDocument], *, color: str) -> None:
    """Print warnings and refusals on standard error, beside the manifests on standard output."""
    console = _console(color, stderr=True)
    for outcome in outcomes:
        for kind, text in (*outcome.messages(), *_skipped(outcome, outcomes)):
            where = f"{outcome.where} ({outcome.name}): "
            said = printable(where), (f"{kind}: ", _MESSAGES[kind]), printable(text)
            console.print(Text.assemble(*said))


def _skipped(
    outcome: InjectedDocument, outcomes: Sequence[InjectedDocument]
) -> Iterator[tuple[str, str]]:
    """Yield that a document has no pods, unless it is one that comes beside pods."""
    if outcome.makes_unseen_pods:
        yield "skipped", "has no pod template of its own: its pods are changed when they are made"
    elif not any(each.templates for each in outcomes):
        yield "skipped", "has no pod and no pod template"


def _console(color: str, *, stderr: bool = False) -> Console:
    forced = {"always": True, "never": False}.get(color)
    return Console(
        highlight=False,
        soft_wrap=True,
        stderr=stderr,
        force_terminal=forced,
        no_color=forced is False,
    )


def _document(outcome: InjectedDocument) -> Iterator[Text]:
    yield Text.assemble((outcome.name, "bold"), (f"   {outcome.where}", "dim"))
    if outcome.before == outcome.after and not outcome.refused:
        yield Text("  nothing is changed")
    for line in difference(outcome.before, outcome.after):
        yield Text(f"  {line}", style=_STYLES.get(line[:1], ""))
    for same in _alike(outcome.templates):
        yield from _reasons(same, several=len(outcome.templates) > 1)
    yield from _message_lines(outcome.messages())
    if outcome.when:
        yield Text(f"happens {outcome.when}", style="dim")


def _message_lines(messages: Iterable[tuple[str, str]]) -> Iterator[Text]:
    for kind, text in messages:
        yield Text.assemble((f"{kind}: ", _MESSAGES[kind]), text)


def _alike(templates: Sequence[Completed]) -> list[list[Completed]]:
    """Return the changed templates, in groups with the same changes."""
    groups: list[list[Completed]] = []
    for each in templates:
        record = each.injection.record
        if not record.set and not record.kept:
            continue
        same = next((g for g in groups if g[0].injection.record == record), None)
        if same is None:
            groups.append([each])
        else:
            same.append(each)
    return groups


def _reasons(same: Sequence[Completed], *, several: bool) -> Iterator[Text]:
    """Yield the source of each set field, and the fields of the user that stay."""
    record = same[0].injection.record
    if several:
        yield from (Text(each.template.where, style="bold") for each in same)
    for source, fields in record.set.items():
        yield Text.assemble("set by ", (source, "green"))
        yield from (Text(f"  {line}") for line in _grouped(fields))
    if record.kept:
        yield Text("yours, kept", style="yellow")
    for field, source in record.kept.items():
        yield Text(f"  {field}   ({source.partition('@')[0]} has another value)")


def _grouped(fields: Sequence[str]) -> Iterator[str]:
    """Yield fields of one map or list on one line: ``containers[main].env: A, B``."""
    groups: dict[str, list[str]] = {}
    for field in fields:
        group, _, name = field.removesuffix("]").rpartition("[")
        named = field.endswith("]")
        groups.setdefault(group if named else field, []).extend([name] if named else [])
    for group, names in groups.items():
        line = f"{group}: {', '.join(names)}" if names else group
        yield from textwrap.wrap(
            line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )


def _sum(outcomes: Sequence[InjectedDocument]) -> Text:
    """Return a summary of all documents in one line."""
    messages = [kind for outcome in outcomes for kind, _ in outcome.messages()]
    refused = sum(outcome.refused for outcome in outcomes)
    changed = sum(outcome.before != outcome.after for outcome in outcomes)
    warnings = messages.count("warning")
    parts = [
        _count(len(outcomes), "document"),
        f"{changed} changed",
        f"{refused} refused" if refused else "",
        _count(warnings, "warning") if warnings else "",
    ]
    style = "bold red" if refused else "yellow" if warnings else "bold"
    return Text(", ".join(filter(None, parts)), style=style)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _yaml(document: Json) -> str:
    text = yaml.dump(
        document, Dumper=YamlDumper, sort_keys=False, default_flow_style=False, width=_WIDTH
    )
    return str(text)
