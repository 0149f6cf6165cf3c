"""`muster whatif` and `muster defrag`: would a gang fit if …, and which pods would have to move."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from muster.apiwire import defrag as defragwire
from muster.apiwire import whatif as wire
from muster.apiwire.whatif import Job, Set, WhatIfNodes, WhatIfQuestion, Without
from muster.cli import output
from muster.cli.ask import client, outputs, whatifviews
from muster.cli.inject import jobfile
from muster.cli.output import ExitCode, Failure
from muster.cli.reach import way

if TYPE_CHECKING:
    from muster.cli.output import Subparsers

_TIMEOUT_S: Final = 30.0  # longer than the extender's own limit
_LEVELS: Final = {
    "topology-required": "topology_required",
    "topology-preferred": "topology_preferred",
}
_NUMBERS: Final = ("size", "min")


def register(commands: Subparsers) -> None:
    """Add the two commands."""
    whatif = client.add(
        commands, "whatif", "would a gang fit if …; nothing is changed", run=_whatif
    )
    about = whatif.add_mutually_exclusive_group(required=True)
    about.add_argument("--gang", metavar="GANG", help="one that exists: NAME or NAMESPACE/NAME")
    about.add_argument(
        "-f", "--file", metavar="FILE", help="a job that does not: YAML or JSON, - is stdin"
    )
    whatif.add_argument("-n", "--namespace", default="", help="of names without one")
    whatif.add_argument("--replicas", "--size", type=int, metavar="N", help="with N pods")
    whatif.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="KIND/NAME",
        help="if gang/NAME, pod/NAME or node/NAME were not there (may be repeated)",
    )
    whatif.add_argument(
        "--with-nodes",
        action="append",
        default=[],
        metavar="N:like=NODE[,LABEL=VALUE…]",
        help="if there were N more, empty (may be repeated)",
    )
    whatif.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="topology-required, topology-preferred (a level, or nothing), size, min",
    )
    whatif.add_argument(
        "--preempt", action="store_true", help="if it does not fit: who would give way, or why none"
    )
    defrag = client.add(
        commands, "defrag", "which moves would make room for a gang; a proposal", run=_defrag
    )
    defrag.add_argument("gang", metavar="GANG", help="NAME or NAMESPACE/NAME")
    defrag.add_argument("-n", "--namespace", default="", help="the gang's (default: the context's)")


def _whatif(arguments: argparse.Namespace) -> int:
    body = msgspec.json.encode(_question(arguments))
    raw = way.ask(arguments, wire.PATH, _TIMEOUT_S, body)
    outputs.show(arguments, raw, lambda: whatifviews.whatif(raw, output.width()))
    return 0 if whatifviews.fits(raw) else ExitCode.NO


def _defrag(arguments: argparse.Namespace) -> int:
    name = _qualified(arguments.gang, way.namespace_of(arguments), "gang")
    raw = way.ask(arguments, f"{defragwire.PATH}/{name}", _TIMEOUT_S)
    outputs.show(arguments, raw, lambda: whatifviews.defrag(raw, output.width()))
    return 0 if whatifviews.is_proposal(raw) else ExitCode.NO


def _question(arguments: argparse.Namespace) -> WhatIfQuestion:
    gang, job, namespace = "", None, way.namespace_of(arguments)
    if arguments.gang:
        gang = _qualified(arguments.gang, namespace, "gang")
    else:
        job = _job(arguments.file, arguments.namespace)
    return WhatIfQuestion(
        gang=gang,
        job=job,
        without=_without(arguments.without, namespace),
        with_nodes=tuple(_nodes(text) for text in arguments.with_nodes),
        set=_wishes(arguments.set, arguments.replicas),
        preempt=arguments.preempt,
    )


def _job(file: str, namespace: str) -> Job:
    found = jobfile.read(file, namespace)
    try:
        return msgspec.convert({key: found[key] for key in ("name", "namespace", "objects")}, Job)
    except msgspec.ValidationError as error:
        raise Failure(f"{file}: {error}") from error


def _qualified(text: str, namespace: str, kind: str) -> str:
    """Return NAMESPACE/NAME; a whole key (three parts) is returned unchanged."""
    parts = text.split("/")
    if not all(parts) or len(parts) > 3:  # noqa: PLR2004  dialect/namespace/name
        raise Failure(f"{kind} {text!r}: write NAME or NAMESPACE/NAME", code=ExitCode.USAGE)
    if len(parts) == 1:
        return f"{namespace or 'default'}/{text}"
    return text if kind != "gang" or len(parts) != 3 else "/".join(parts[1:])  # noqa: PLR2004


def _without(texts: list[str], namespace: str) -> Without:
    found: dict[str, list[str]] = {"gangs": [], "pods": [], "nodes": []}
    for text in texts:
        kind, slash, name = text.partition("/")
        if not slash or not name or f"{kind}s" not in found:
            raise Failure(
                f"--without {text}: write gang/NAME, pod/NAME or node/NAME", code=ExitCode.USAGE
            )
        found[f"{kind}s"].append(name if kind == "node" else _qualified(name, namespace, kind))
    return Without(**{kind: tuple(names) for kind, names in found.items()})


def _nodes(text: str) -> WhatIfNodes:
    count, colon, rest = text.partition(":")
    pairs = dict(part.partition("=")[::2] for part in rest.split(",") if part)
    like = pairs.pop("like", "")
    if not colon or not count.isdecimal() or not like or not all(pairs.values()):
        raise Failure(
            f"--with-nodes {text}: write N:like=NODE, as 4:like=n1 or 4:like=n1,rack=r9",
            code=ExitCode.USAGE,
        )
    return WhatIfNodes(count=int(count), like=like, labels=pairs)


def _wishes(texts: list[str], size: int | None) -> Set:
    """Return the changed wishes; ``size`` overrides a size among the texts."""
    found = Set()
    for text in texts:
        key, equals, value = text.partition("=")
        if equals and key in _LEVELS:
            found = replace(found, **{_LEVELS[key]: value})
        elif equals and key in _NUMBERS and value.isdecimal():
            found = replace(found, **{key: int(value)})
        else:
            allowed = ", ".join([f"{name}=LEVEL" for name in _LEVELS])
            raise Failure(
                f"--set {text}: allowed are {allowed}, size=N, min=N", code=ExitCode.USAGE
            )
    return found if size is None else replace(found, size=size)
