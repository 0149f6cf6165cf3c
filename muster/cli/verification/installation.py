"""Where Muster is installed in a cluster, and the configuration that its webhook runs with."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from muster.cli.verification import installedconfig
from muster.kube.errors import Forbidden, NotFound
from muster.kube.http.transport import HttpRequest, Transport
from muster.kube.wire import ObjectMeta

USUAL: Final = "muster-system"
_DEPLOYMENTS: Final = "/apis/apps/v1/deployments"
_OURS: Final = {
    "labelSelector": "app.kubernetes.io/name=muster,app.kubernetes.io/component=extender"
}


class Ambiguous(Exception):
    """Muster is in several namespaces; the text names them."""


class _Deployment(msgspec.Struct):
    metadata: ObjectMeta


class _Deployments(msgspec.Struct):
    items: list[_Deployment] = msgspec.field(default_factory=list)


async def namespace(transport: Transport) -> str:
    """Return the namespace with the extender's Deployment, the usual one where none is seen.

    Raises ``Ambiguous`` for more than one, ``KubeError``.
    """
    try:
        raw = await transport.send(HttpRequest("GET", _DEPLOYMENTS, _OURS))
    except Forbidden:
        return USUAL
    deployments = msgspec.json.decode(raw, type=_Deployments).items
    found = sorted({each.metadata.namespace for each in deployments})
    if len(found) > 1:
        text = f"Muster is in {len(found)} namespaces: {', '.join(found)}"
        raise Ambiguous(f"{text}; choose one with --muster-namespace")
    return found[0] if found else USUAL


async def webhook_config(transport: Transport, where: str) -> str | None:
    """Return the text of the installed webhook's configuration, None where it cannot be seen."""
    try:
        text = await installedconfig.configuration(
            transport, where, "muster-webhook", "webhook.yaml"
        )
    except (NotFound, Forbidden):
        return None
    return text if text.strip() not in ("", "{}") else None


@contextmanager
def as_file(text: str) -> Iterator[Path]:
    """Write a text into a file for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="muster-verify-") as directory:
        path = Path(directory) / "webhook.yaml"
        path.write_text(text, encoding="utf-8")
        yield path
