"""The context in use: which API server, which namespace, and who we are there.

A pod without a kubeconfig uses its ServiceAccount, as client-go does.
"""

from __future__ import annotations

import difflib
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from muster.cli.kubeconfig import credential, files
from muster.cli.kubeconfig.credential import Credential
from muster.cli.kubeconfig.files import ConfigEntry, Kubeconfig, contents, decoded
from muster.cli.output import ExitCode, Failure

_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NO_CLUSTER: Final = (
    "no cluster: there is no kubeconfig ({where}); name one with --kubeconfig FILE or $KUBECONFIG, "
    "or name the extender itself with --extender URL"
)


@dataclass(frozen=True, slots=True)
class Cluster:
    """One API server, and who we are to it."""

    #: the context's name, "" in a pod
    context: str
    #: the URL of the API server
    server: str
    #: where it is written, for messages
    source: str
    #: the context's namespace
    namespace: str
    credential: Credential
    #: PEM of who may have signed the API server's certificate, "" for the system's authorities
    authority: str = ""
    #: whether the API server's certificate is not checked
    insecure: bool = False
    #: the name that the certificate must have, "" for the host of ``server``
    server_name: str = ""
    #: the URL of an HTTP proxy, "" for none
    proxy: str = ""

    @property
    def host(self) -> str:
        """Return host and port of the server."""
        return urlsplit(self.server).netloc

    def tls(self) -> ssl.SSLContext:
        """Return a context for connections to the API server, with our certificate if we have one.

        Raises ``Failure``.
        """
        try:
            context = ssl.create_default_context(cadata=self.authority or None)
        except (ssl.SSLError, ValueError) as error:
            text = f"{self.source}: certificate-authority: {error}"
            raise Failure(text, code=ExitCode.USAGE) from error
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self.credential.show(context)
        return context


def find(
    named: Path | None, context: str | None, environment: Mapping[str, str] | None = None
) -> Cluster:
    """Return the cluster of a context, of the current one, or of the pod we run in.

    Raises ``Failure`` that names the file and the contexts which it has.
    """
    environment = os.environ if environment is None else environment
    paths = files.places(named, environment)
    if not paths:
        return _pod(environment)
    return _chosen(files.read(paths), context)


def _chosen(config: Kubeconfig, wanted: str | None) -> Cluster:
    name = wanted or config.current
    if not name:
        names = ", ".join(config.contexts) or "none"
        text = f"{config}: no current-context; choose one with --context: {names}"
        raise Failure(text, code=ExitCode.USAGE)
    if name not in config.contexts:
        raise Failure(_unknown(config, name), code=ExitCode.USAGE)
    chosen = config.contexts[name]
    cluster = _entry(config, "cluster", config.clusters, chosen.text("cluster"), name)
    user = ConfigEntry({}, Path())
    if chosen.text("user"):
        user = _entry(config, "user", config.users, chosen.text("user"), name)
    server = cluster.text("server").rstrip("/")
    if not server.startswith(("http://", "https://")):
        text = f"{config}: cluster {chosen.text('cluster')}: server: {server!r} is no URL"
        raise Failure(text, code=ExitCode.USAGE)
    return Cluster(
        context=name,
        server=server,
        source=str(config),
        namespace=chosen.text("namespace") or "default",
        credential=credential.of_user(chosen.text("user"), user, cluster, str(config)),
        authority=authority(cluster, str(config)),
        insecure=cluster.fields.get("insecure-skip-tls-verify") is True,
        server_name=cluster.text("tls-server-name"),
        proxy=cluster.text("proxy-url"),
    )


def _unknown(config: Kubeconfig, name: str) -> str:
    names = ", ".join(config.contexts) or "none"
    near = difflib.get_close_matches(name, config.contexts, 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"context {name!r}: not in {config}{meant} There are: {names}"


def _entry(
    config: Kubeconfig, kind: str, entries: Mapping[str, ConfigEntry], name: str, context: str
) -> ConfigEntry:
    if name in entries:
        return entries[name]
    text = f"{config}: context {context}: {kind}: {name!r} is not in the file"
    raise Failure(text, code=ExitCode.USAGE)


def authority(cluster: ConfigEntry, source: str) -> str:
    """Return the PEM of a cluster's authority, "" for none. Raises ``Failure``."""
    if data := cluster.text("certificate-authority-data"):
        return decoded(data, source, "certificate-authority-data").decode(errors="replace")
    path = cluster.path("certificate-authority")
    return "" if path is None else contents(path, source, "certificate-authority").decode()


def _pod(environment: Mapping[str, str]) -> Cluster:
    host, port = (environment.get(f"KUBERNETES_SERVICE_{word}", "") for word in ("HOST", "PORT"))
    if not host:
        where = environment.get("KUBECONFIG") or "~/.kube/config"
        raise Failure(_NO_CLUSTER.format(where=where), code=ExitCode.USAGE)
    source = "this pod's ServiceAccount"
    namespace = _POD / "namespace"
    return Cluster(
        context="",
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        source=source,
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        credential=Credential(
            "ServiceAccount", token=contents(_POD / "token", source, "token").decode().strip()
        ),
        authority=contents(_POD / "ca.crt", source, "ca.crt").decode(),
    )
