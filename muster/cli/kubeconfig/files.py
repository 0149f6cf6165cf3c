"""Which kubeconfig files there are, and how several are one: the first entry of a name wins.

``--kubeconfig FILE``, else the list in $KUBECONFIG, else ~/.kube/config. Files of a list that do
not exist are passed over, as kubectl does; a file that was named alone must exist.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from muster.cli.output import ExitCode, Failure

_USUAL: Final = Path(".kube", "config")
_SECTIONS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One cluster, context or user."""

    #: as it is in the file
    fields: Mapping[str, Any]
    #: where relative paths in it begin
    directory: Path

    def text(self, key: str) -> str:
        """Return a text, "" where there is none."""
        value = self.fields.get(key)
        return value if isinstance(value, str) else ""

    def path(self, key: str) -> Path | None:
        """Return a path in it, None where there is none."""
        text = self.text(key)
        return self.directory / text if text else None


@dataclass(slots=True)
class Kubeconfig:
    """All files together."""

    #: the files that were read
    files: tuple[Path, ...]
    current: str = ""
    clusters: dict[str, ConfigEntry] = field(default_factory=dict)
    contexts: dict[str, ConfigEntry] = field(default_factory=dict)
    users: dict[str, ConfigEntry] = field(default_factory=dict)

    def __str__(self) -> str:
        return "kubeconfig " + ", ".join(map(str, self.files))


def places(named: Path | None, environment: Mapping[str, str]) -> list[Path]:
    """Return the files to read that exist. Raises ``Failure`` if ``named`` does not."""
    if named is not None:
        if not named.exists():
            raise Failure(f"--kubeconfig {named}: does not exist", code=ExitCode.USAGE)
        return [named]
    listed = [Path(each) for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    return [path for path in listed or [Path.home() / _USUAL] if path.exists()]


def read(paths: list[Path]) -> Kubeconfig:
    """Return the files as one. Raises ``Failure`` for one that is no kubeconfig."""
    found = Kubeconfig(tuple(paths))
    for path in paths:
        document = _document(path)
        current = document.get("current-context")
        found.current = found.current or (current if isinstance(current, str) else "")
        for section, inside in _SECTIONS.items():
            kept: dict[str, ConfigEntry] = getattr(found, section)
            for name, fields in _named(document.get(section), inside):
                kept.setdefault(name, ConfigEntry(fields, path.parent))
    return found


def _document(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  --help starts without it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506  a safe loader
    except OSError as error:
        raise Failure(f"kubeconfig {path}: {error.strerror}", code=ExitCode.USAGE) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        where = " ".join(str(error).split())
        raise Failure(f"kubeconfig {path}: is no YAML: {where}", code=ExitCode.USAGE) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise Failure(f"kubeconfig {path}: is no kubeconfig", code=ExitCode.USAGE)
    return document


def _named(entries: object, inside: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the entries of a section; what has no name or no content is passed over."""
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            fields = entry.get(inside)
            yield entry["name"], fields if isinstance(fields, dict) else {}


def decoded(data: str, source: str, field: str) -> bytes:
    """Return base64 of a kubeconfig, decoded. Raises ``Failure``."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Failure(f"{source}: {field}: is not base64", code=ExitCode.USAGE) from error


def contents(path: Path, source: str, field: str) -> bytes:
    """Return what is in a file that a kubeconfig names. Raises ``Failure``."""
    try:
        return path.read_bytes()
    except OSError as error:
        text = f"{source}: {field}: {path}: {error.strerror}"
        raise Failure(text, code=ExitCode.USAGE) from error
