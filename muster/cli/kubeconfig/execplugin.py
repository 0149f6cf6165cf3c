"""A credential from a program, as clouds give them (client.authentication.k8s.io, KEP-541)."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from muster.cli.kubeconfig.files import ConfigEntry, contents
from muster.cli.output import ExitCode, Failure

_AUTHORITY: Final = "certificate-authority-data"
_CLUSTER: Final = (
    *("server", "tls-server-name", "insecure-skip-tls-verify"),
    *(_AUTHORITY, "proxy-url", "disable-compression"),
)
_EXTENSION: Final = "client.authentication.k8s.io/exec"  # KEP-541: its content is for the program
_PATIENCE_S: Final = 120.0  # a browser may be asked for a password meanwhile


@dataclass(frozen=True, slots=True)
class Given:
    """What the program printed."""

    token: str = field(default="", repr=False)
    #: PEM
    certificate: str = ""
    #: PEM
    key: str = field(default="", repr=False)


def run(plugin: ConfigEntry, cluster: ConfigEntry, where: str) -> Given:
    """Run the program of a user's entry ``exec``. Raises ``Failure`` that says what it said.

    ``cluster``: what the credential is for.
    """
    command = plugin.text("command")
    asks = sys.stdin.isatty() and plugin.text("interactiveMode") != "Never"
    try:
        done = subprocess.run(  # noqa: S603  the kubeconfig names it; kubectl runs it, too
            [_found(command, plugin.directory), *_words(plugin.fields.get("args"))],
            env=_environment(plugin, cluster, interactive=asks),
            stdin=None if asks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # what it has to say goes to the terminal
            check=False,
            timeout=_PATIENCE_S,
        )
    except FileNotFoundError as error:
        hint = " ".join(plugin.text("installHint").split())
        text = f"{where}: exec: {command!r} is not installed" + (f": {hint}" if hint else "")
        raise Failure(text, code=ExitCode.USAGE) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{where}: exec: {command!r}: {error}", code=ExitCode.USAGE) from error
    if done.returncode:
        text = f"{where}: exec: {command!r} ended with {done.returncode}; run it by hand"
        raise Failure(text, code=ExitCode.DENIED)
    return _given(done.stdout, command, where)


def _given(printed: bytes, command: str, where: str) -> Given:
    try:
        status: Any = json.loads(printed)["status"]
        found = Given(
            str(status.get("token") or ""),
            str(status.get("clientCertificateData") or ""),
            str(status.get("clientKeyData") or ""),
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        text = f"{where}: exec: {command!r} printed no ExecCredential with a status"
        raise Failure(text, code=ExitCode.DENIED) from error
    if not found.token and not found.certificate:
        text = f"{where}: exec: {command!r} gave no credential; run it by hand"
        raise Failure(text, code=ExitCode.DENIED)
    return found


def _found(command: str, directory: Path) -> str:
    """Return the program: a path in the kubeconfig begins at its folder, a name is on PATH."""
    return str(directory / command) if "/" in command else command


def _words(listed: object) -> list[str]:
    return [str(word) for word in listed] if isinstance(listed, list) else []


def _environment(plugin: ConfigEntry, cluster: ConfigEntry, *, interactive: bool) -> dict[str, str]:
    version = plugin.text("apiVersion") or "client.authentication.k8s.io/v1"
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.fields.get("provideClusterInfo") is True:
        spec["cluster"] = _cluster(cluster)
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
    given = {
        str(each["name"]): str(each.get("value", "")) for each in _named(plugin.fields.get("env"))
    }
    return {**os.environ, **given, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _cluster(cluster: ConfigEntry) -> dict[str, Any]:
    """Return a cluster as client.authentication.k8s.io has it: authorities are data, not files."""
    found = {key: cluster.fields[key] for key in _CLUSTER if key in cluster.fields}
    path = cluster.path("certificate-authority")
    if path is not None and _AUTHORITY not in found:
        found[_AUTHORITY] = base64.b64encode(
            contents(path, "exec", "certificate-authority")
        ).decode()
    for each in _named(cluster.fields.get("extensions")):
        if each["name"] == _EXTENSION:
            found["config"] = each.get("extension")
    return found


def _named(listed: object) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of a list that have a name."""
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and "name" in each:
            yield each
