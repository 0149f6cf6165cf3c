"""Forms of an answer: text, wide, name, json, yaml (kubectl's -o)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from muster.cli import output
from muster.cli.output import ExitCode, Failure


class Format(StrEnum):
    """What -o may be."""

    TEXT = ""
    WIDE = "wide"
    NAME = "name"
    JSON = "json"
    YAML = "yaml"

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Format:
        """Return the form that the flags choose; --json is -o json."""
        return cls.JSON if arguments.json else cls(arguments.output)


def add_flags(command: argparse.ArgumentParser) -> None:
    """Add -o and --json."""
    command.add_argument(
        "-o",
        "--output",
        choices=[form.value for form in Format if form],
        default="",
        help="json and yaml: the reply as it came; name: KIND/NAME; wide: more columns",
    )
    command.add_argument("--json", action="store_true", help="the same as -o json")


def show(arguments: argparse.Namespace, raw: bytes, text: Callable[[], str]) -> None:
    """Print an answer in the form that was chosen; ``text`` makes the one for people."""
    output.say(shown(Format.of(arguments), raw, text))


def shown(form: Format, raw: bytes, text: Callable[[], str]) -> str:
    """Return an answer in a form. Raises ``Failure`` for names of what has none."""
    match form:
        case Format.TEXT | Format.WIDE:
            return text()
        case Format.JSON:
            return raw.decode()
        case Format.YAML:
            import yaml  # noqa: PLC0415  lazy

            dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
            made: str = yaml.dump(json.loads(raw), Dumper=dumper, sort_keys=False)
            return made.rstrip("\n")
        case Format.NAME:
            return "\n".join(_names(json.loads(raw)))


def _names(answer: Any) -> list[str]:
    """Return KIND/NAME of each thing that an answer is about."""
    if isinstance(answer, list):
        return [f"gang/{row['gang'].rpartition('/')[2]}" for row in answer]
    if answer.get("pod"):
        return [f"pod/{answer['pod'].rpartition('/')[2]}"]
    gang = answer.get("gang")
    if isinstance(gang, dict):
        return [f"gang/{gang['gang'].rpartition('/')[2]}"]
    if isinstance(gang, str):
        return [f"gang/{gang.rpartition('/')[2]}"]
    if isinstance(answer.get("decision"), dict):
        return [f"gang/{answer['decision']['gang'].rpartition('/')[2]}"]
    if answer.get("kind") in ("pod", "gang"):
        return [f"{answer['kind']}/{answer['name'].rpartition('/')[2]}"]
    if "cluster" in answer:
        return [f"cluster/{answer['cluster']}"]
    raise Failure("-o name: the answer is about nothing that has a name", code=ExitCode.USAGE)
