"""Answers and failures in words: what was tried, where, and what to do next."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import Final

import msgspec

from muster.cli.kubeconfig.context import Cluster
from muster.cli.output import ExitCode, Failure
from muster.cli.reach.exchange import Answer

_SHOWN: Final = 300  # characters of what another server answers
_EXPIRED: Final = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_NAME: Final = 62  # X509_V_ERR_HOSTNAME_MISMATCH
_ADDRESS: Final = 64  # X509_V_ERR_IP_ADDRESS_MISMATCH


class _Body(msgspec.Struct):
    """The body of the extender's errors (``error``), or a Status of the API server."""

    error: str = ""
    kind: str = ""
    message: str = ""
    reason: str = ""


def body_of(answer: Answer) -> _Body:
    """Return what an answer says; empty for the answer of any other server."""
    try:
        return msgspec.json.decode(answer.body, type=_Body)
    except msgspec.MsgspecError:
        return _Body()


def of_extender(text: str, status: int) -> Failure:
    """Return the failure for an error of the extender."""
    if status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
        return Failure(text, code=ExitCode.DENIED)
    if status == http.HTTPStatus.SERVICE_UNAVAILABLE:
        return Failure(text, code=ExitCode.UNREACHED)
    return Failure(text)


def of_api_server(cluster: Cluster, namespace: str, answer: Answer) -> Failure:
    """Return the failure for an answer of the API server about the extender's Service."""
    said, host = body_of(answer), cluster.host
    if said.error:
        return of_extender(said.error, answer.status)
    if said.kind != "Status":
        shown = " ".join(answer.body.decode(errors="replace").split())[:_SHOWN]
        text = (
            f"{cluster.server}: answered {answer.status} and is no Kubernetes API server: "
            f"{shown or 'an empty body'}; {_check(cluster)}"
        )
        return Failure(text, code=ExitCode.UNREACHED)
    if answer.status == http.HTTPStatus.UNAUTHORIZED:
        text = f"API server {host} does not accept user {cluster.credential.user!r}{_age(cluster)}"
        return Failure(f"{text}: log in again; {_check(cluster)}", code=ExitCode.DENIED)
    nobody = "no endpoints available" in said.message or said.message.startswith("endpoints ")
    if answer.status == http.HTTPStatus.NOT_FOUND and not nobody:
        text = (
            f"Muster is not installed in namespace {namespace} of {host} (no Service "
            f"muster-extender there{_of_context(cluster)}); name its namespace with "
            "--muster-namespace, or the right cluster with --context"
        )
        return Failure(text, code=ExitCode.UNREACHED)
    if nobody:
        text = (
            f"no extender leads: Service {namespace}/muster-extender of {host} has no ready pod "
            f"behind it; look at it with: kubectl -n {namespace} get pods,lease"
        )
        return Failure(text, code=ExitCode.UNREACHED)
    if "error trying to reach service" in said.message:
        _, _, why = said.message.partition("error trying to reach service: ")
        text = (
            f"API server {host} does not reach the extender's pod: {why}; is it ready (kubectl -n "
            f"{namespace} get pods), and do network policies let the API server in? Otherwise try "
            "--via port-forward"
        )
        return Failure(text, code=ExitCode.UNREACHED)
    return Failure(f"API server {host}: {answer.status}: {said.message}", code=ExitCode.UNREACHED)


def not_allowed(cluster: Cluster, namespace: str, rights: str) -> Failure:
    """Return the failure of a user who may not go any of the ways."""
    text = (
        f"user {cluster.credential.user!r} may not {rights} in namespace {namespace} of "
        f"{cluster.host}: ask an administrator for the Role muster-user: kubectl -n {namespace} "
        "create rolebinding NAME --role=muster-user --user=USER"
    )
    return Failure(text, code=ExitCode.DENIED)


def no_answer(what: str, where: str, error: Exception) -> Failure:
    """Return the failure for no answer at all; ``what`` was asked at ``where``."""
    return Failure(f"{what} {where}: {reason(error)}", code=ExitCode.UNREACHED)


def reason(error: Exception) -> str:
    """Return why there is no answer, and what to look at, as a person would say it."""
    inner = getattr(error, "reason", None)  # of urllib's URLError
    if isinstance(inner, OSError):
        return reason(inner)
    match error:
        case ssl.SSLCertVerificationError():
            return _certificate(error)
        case ssl.SSLError():
            return (
                f"the TLS handshake failed ({error.reason or error}): is this its https port, and "
                "does it accept our certificate?"
            )
        case socket.gaierror():
            return "the name is not known: is it spelt right, and is the VPN up?"
        case ConnectionRefusedError():
            return "nothing listens there: is it running, and is the port right?"
        case TimeoutError():
            return "no answer in time: is the network (VPN, firewall) open to it?"
        case http.client.RemoteDisconnected():  # a ConnectionResetError, too
            return "the connection was closed without an answer; try again"
        case http.client.IncompleteRead() | ConnectionResetError() | BrokenPipeError():
            return "the connection was cut in the middle of the answer; try again"
        case http.client.HTTPException():
            return f"what answers does not speak HTTP ({type(error).__name__})"
        case _:
            return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == _EXPIRED:
        return "its certificate has expired: it must be renewed, or this machine's clock is wrong"
    if error.verify_code in (_NAME, _ADDRESS):
        return f"its certificate is for another name ({error.verify_message.rstrip('.')})"
    return (
        f"its certificate is not trusted ({error.verify_message}): is the certificate authority "
        "that of this cluster?"
    )


def _age(cluster: Cluster) -> str:
    """Return that the client certificate has expired, "" otherwise."""
    if not cluster.credential.certificate:
        return ""
    from datetime import UTC, datetime  # noqa: PLC0415  lazy

    from cryptography import x509  # noqa: PLC0415  lazy

    try:
        found = x509.load_pem_x509_certificates(cluster.credential.certificate)[0]
    except ValueError:
        return ""
    until = found.not_valid_after_utc
    return f": its certificate expired on {until:%Y-%m-%d}" if until < datetime.now(UTC) else ""


def _check(cluster: Cluster) -> str:
    return f"the credential is of {cluster.source}{_of_context(cluster)}"


def _of_context(cluster: Cluster) -> str:
    return f", context {cluster.context}" if cluster.context else ""
