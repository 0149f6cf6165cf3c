"""What a kubeconfig's user shows: a token, a certificate, or what a program prints."""

from __future__ import annotations

import os
import ssl
import tempfile
from dataclasses import dataclass, field
from typing import Final

from muster.cli.kubeconfig import execplugin
from muster.cli.kubeconfig.files import ConfigEntry, contents, decoded
from muster.cli.output import ExitCode, Failure

_IMPERSONATION: Final = ("as", "as-groups", "as-uid", "as-user-extra")


@dataclass(frozen=True, slots=True)
class Credential:
    """Who we are. Both may be there; the API server takes the certificate first."""

    #: the user's name in the kubeconfig, for messages
    user: str
    token: str = field(default="", repr=False)
    #: PEM
    certificate: bytes = b""
    #: PEM
    key: bytes = field(default=b"", repr=False)

    def show(self, context: ssl.SSLContext) -> None:
        """Show the certificate in handshakes. Raises ``Failure`` for one that cannot be used."""
        if not self.certificate:
            return
        # OpenSSL reads files alone. This one is readable by nobody else, and gone at once.
        handle, path = tempfile.mkstemp(prefix="muster-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(self.certificate + b"\n" + self.key)
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            text = f"user {self.user}: client certificate and key cannot be used: {reason}"
            raise Failure(text, code=ExitCode.USAGE) from error
        finally:
            os.unlink(path)  # noqa: PTH108  pathlib is not loaded for it


def of_user(name: str, user: ConfigEntry, cluster: ConfigEntry, source: str) -> Credential:
    """Return what a user shows to a cluster. Raises ``Failure``."""
    where = f"{source}: user {name}"
    if any(user.fields.get(key) for key in _IMPERSONATION):
        text = f"{where}: as: impersonation does not reach the extender; use a user of your own"
        raise Failure(text, code=ExitCode.USAGE)
    plugin = user.fields.get("exec")
    if isinstance(plugin, dict):
        made = execplugin.run(ConfigEntry(plugin, user.directory), cluster, where)
        return Credential(name, made.token, made.certificate.encode(), made.key.encode())
    return Credential(
        name,
        _token(user, where),
        _part(user, "client-certificate", where),
        _part(user, "client-key", where),
    )


def _token(user: ConfigEntry, where: str) -> str:
    # As client-go: a file is newer than what is written beside it.
    if (path := user.path("tokenFile")) is not None:
        return contents(path, where, "tokenFile").decode(errors="replace").strip()
    provider = user.fields.get("auth-provider")
    if not isinstance(provider, dict):
        return user.text("token").strip()
    config = provider.get("config")
    values = ConfigEntry(config if isinstance(config, dict) else {}, user.directory)
    return values.text("id-token") or values.text("access-token")


def _part(user: ConfigEntry, field_: str, where: str) -> bytes:
    """Return a certificate or key as PEM, empty for none."""
    if data := user.text(f"{field_}-data"):
        return decoded(data, where, f"{field_}-data")
    path = user.path(field_)
    return b"" if path is None else contents(path, where, field_)
