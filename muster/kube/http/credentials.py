"""Where credentials come from: kubeconfig, the pod's own files, or given once.

The loaders of the ``kubernetes`` package do the reading (certificates, tokens, exec
plugins, OIDC). The package is imported on first use only, which costs about a second and
40 MiB, and everything here may block: ``muster.kube.http.auth`` calls it in a thread. Commands have
a reader of their own; ``muster.cli.kubeconfig`` says why.
"""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, cast

import yaml

from muster.kube.errors import AuthError

# Where the package's configuration keeps the token: since release 36, and before.
_KEY: Final = "BearerToken"
_OLD_KEY: Final = "authorization"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a connection needs."""

    #: The API server's URL.
    server: str
    #: ``None`` for plain HTTP (tests, ``kubectl proxy``).
    tls: ssl.SSLContext | None = None
    #: Value of the header, "" for none.
    authorization: str = field(default="", repr=False)
    #: The name that the server's certificate must have; ``None``: the host of ``server``.
    server_hostname: str | None = None
    #: URL of an HTTP proxy.
    proxy: str | None = None

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the headers that identify us."""
        return {"Authorization": self.authorization} if self.authorization else {}


class CredentialSource(Protocol):
    """Where credentials are read from. Both methods may block."""

    def load(self) -> Credentials:
        """Read everything anew. Raises ``AuthError``."""
        ...

    def authorization(self) -> str:
        """Return the Authorization header's value, renewed if it was about to expire."""
        ...


@dataclass(frozen=True, slots=True)
class FixedSource:
    """Credentials given once."""

    credentials: Credentials

    def load(self) -> Credentials:
        """Return them."""
        return self.credentials

    def authorization(self) -> str:
        """Return theirs."""
        return self.credentials.authorization


class _Configuration(Protocol):
    """The part of ``kubernetes.client.Configuration`` that is read."""

    host: str
    ssl_ca_cert: str | None
    cert_file: str | None
    key_file: str | None
    verify_ssl: bool
    tls_server_name: str | None
    proxy: str | None

    def get_api_key_with_prefix(self, identifier: str, alias: str) -> str | None: ...


class LoaderSource:
    """Credentials read by a loader of the ``kubernetes`` package."""

    def __init__(
        self,
        read: Callable[[], _Configuration],
        where: str,
        *,
        token_file: bool = False,
        plugin: str = "",
    ) -> None:
        """Use ``read``, which loads from ``where``.

        ``token_file``: the loader does not notice changes of it, so it is read again here.
        ``plugin``: the command that prints the credential; the loader only logs its failures.
        """
        self._read = read
        self._where = where
        self._token_file = token_file
        self._plugin = plugin
        self._configuration: _Configuration | None = None

    def load(self) -> Credentials:
        """See ``CredentialSource``."""
        try:
            found = self._read()
        # The loaders index into what the file says: a wrong shape shows as any of these.
        except (OSError, ValueError, LookupError, TypeError, AttributeError, yaml.YAMLError) as e:
            raise AuthError(f"{self._where}: {e}; check that it exists and is complete") from e
        authorization = _authorization(found)
        if self._plugin and not authorization and not found.cert_file:
            raise AuthError(
                f"{self._where}: exec plugin {self._plugin!r} gave no credential; run it by hand"
            )
        self._configuration = found
        return Credentials(
            server=found.host.rstrip("/"),
            tls=_tls(found) if found.host.startswith("https://") else None,
            authorization=authorization,
            server_hostname=found.tls_server_name or None,
            proxy=found.proxy or None,
        )

    def authorization(self) -> str:
        """See ``CredentialSource``. The loader's own hook renews expired tokens of exec plugins."""
        if self._configuration is None or self._token_file:
            return self.load().authorization
        return _authorization(self._configuration)


def kubeconfig_source(path: Path, context: str | None = None) -> LoaderSource:
    """Return the source for one user of a kubeconfig file."""

    def read() -> _Configuration:
        from kubernetes import client, config  # noqa: PLC0415  heavy: a second and 40 MiB

        found = client.Configuration()
        try:
            config.load_kube_config(  # type: ignore[no-untyped-call]  # the package has no types
                str(path), context, client_configuration=found, persist_config=False
            )
        except config.ConfigException as error:
            raise ValueError(str(error)) from error
        return cast("_Configuration", found)

    user = _user(path, context)
    return LoaderSource(
        read,
        f"kubeconfig {path}",
        token_file="tokenFile" in user,
        plugin=str(user["exec"].get("command")) if isinstance(user.get("exec"), dict) else "",
    )


def in_cluster_source() -> LoaderSource:
    """Return the source for the ServiceAccount of the pod this process runs in."""

    def read() -> _Configuration:
        from kubernetes import client, config  # noqa: PLC0415  heavy: a second and 40 MiB

        found = client.Configuration()
        try:
            config.load_incluster_config(found)  # type: ignore[no-untyped-call]  # as above
        except config.ConfigException as error:
            raise ValueError(str(error)) from error
        return cast("_Configuration", found)

    return LoaderSource(read, "in-cluster configuration")


def tls_context(
    ca: Path | None,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    verify: bool = True,
) -> ssl.SSLContext:
    """Return a context that trusts ``ca`` (the system's where None). Raises ``AuthError``."""
    try:
        context = ssl.create_default_context(cafile=ca)
        if not verify:  # only where the kubeconfig says insecure-skip-tls-verify
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError is one
        raise AuthError(f"TLS files {ca}, {certificate}, {key}: {error}") from error
    return context


def _tls(found: _Configuration) -> ssl.SSLContext:
    return tls_context(
        Path(found.ssl_ca_cert) if found.ssl_ca_cert else None,
        certificate=Path(found.cert_file) if found.cert_file else None,
        key=Path(found.key_file) if found.key_file else None,
        verify=found.verify_ssl,
    )


def _authorization(found: _Configuration) -> str:
    return (found.get_api_key_with_prefix(_KEY, _OLD_KEY) or "").strip()


def _user(path: Path, context: str | None) -> dict[str, Any]:
    """Return the user entry of ``context``, empty if it cannot be read."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        name = context or document["current-context"]
        user = next(c["context"]["user"] for c in document["contexts"] if c["name"] == name)
        entry = next(u["user"] for u in document["users"] if u["name"] == user)
    except (OSError, ValueError, LookupError, TypeError, StopIteration, yaml.YAMLError):
        return {}  # the loader reports what is wrong
    return entry if isinstance(entry, dict) else {}
