"""What can go wrong between Muster and the API server.

::

    KubeError
    ├── TransportError            no answer; the request may or may not have taken effect
    │   ├── NotSent               no connection: it certainly had no effect
    │   └── Fenced                not sent either: this process may not write (any more)
    ├── AuthError                 credentials cannot be loaded
    ├── DecodeError               an answer that is not what the API promises
    └── APIError                  the server's answer: a Status with a code
        ├── BadRequest 400   ├── Unauthorized 401   ├── Forbidden 403   ├── NotFound 404
        ├── Conflict 409 ── AlreadyExists           ├── Gone 410        ├── Invalid 422
        └── TooManyRequests 429                     └── ServerError 5xx

``from_response`` is total: any status and any body become one of these.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from muster.kube.wire import Wire

_SHOWN: Final = 600  # characters of a message, then it is cut; 422s of pods quote whole diffs
_SERVER_ERRORS: Final = 500  # first code of that class


class StatusCause(Wire, frozen=True):
    """meta/v1 StatusCause."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Wire, frozen=True):
    """meta/v1 StatusDetails."""

    name: str = ""
    kind: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Wire, frozen=True):
    """meta/v1 Status: every refusal, and the object of an ERROR watch event."""

    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


class KubeError(Exception):
    """Base of everything this package raises on purpose."""


class TransportError(KubeError):
    """The connection failed or timed out; whether the request took effect is unknown."""


class NotSent(TransportError):
    """No connection came about, so the request has certainly not taken effect."""


class Fenced(TransportError):
    """The request was not sent: this process is not, or no longer, the one that may write."""


class AuthError(KubeError):
    """Credentials or the kubeconfig cannot be loaded; the message names the file and entry."""


class DecodeError(KubeError):
    """An answer is not the JSON that the API promises; the message names the field."""


class APIError(KubeError):
    """The API server refused. ``code`` is the HTTP status, ``status`` its Status object."""

    def __init__(self, code: int, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(f"{code} {status.reason or 'Failure'}: {status.message[:_SHOWN]}")
        self.code = code
        self.status = status
        self.retry_after = retry_after  # seconds the server asks to wait, None if it did not

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the paths of the fields the server objected to."""
        details = self.status.details
        return () if details is None else tuple(cause.field for cause in details.causes)


class BadRequest(APIError):
    """400: malformed request."""


class Unauthorized(APIError):
    """401: the token is missing, wrong or expired."""


class Forbidden(APIError):
    """403: the identity lacks a right."""


class NotFound(APIError):
    """404: no such object, or no such resource."""


class Conflict(APIError):
    """409: the object has changed, is bound elsewhere, or is another one of the same name."""


class AlreadyExists(Conflict):
    """409 on create."""


class VersionExpired(APIError):
    """410: the resource version or continue token is too old; list again."""


class Invalid(APIError):
    """422: the object would be invalid."""


class TooManyRequests(APIError):
    """429: throttled, or an eviction that a disruption budget does not allow now."""


class ServerError(APIError):
    """5xx."""


_BY_CODE: Final[Mapping[int, type[APIError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: VersionExpired,
    422: Invalid,
    429: TooManyRequests,
}
_STATUS: Final = msgspec.json.Decoder(Status)


def from_response(code: int, body: bytes, *, retry_after: str | None = None) -> APIError:
    """Return the error for an HTTP answer; bodies that are no Status are quoted."""
    try:
        status = _STATUS.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        status = Status(status="Failure", message=body[:_SHOWN].decode(errors="replace").strip())
    return from_status(status, code=code, retry_after=_seconds(retry_after))


def from_status(
    status: Status, *, code: int | None = None, retry_after: float | None = None
) -> APIError:
    """Return the error for a Status, as it also arrives inside a watch."""
    number = status.code if code is None else code
    if retry_after is None and status.details is not None and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    return _class(number, status.reason)(number, status, retry_after=retry_after)


def _class(code: int, reason: str) -> type[APIError]:
    if reason == "AlreadyExists":
        return AlreadyExists
    if code >= _SERVER_ERRORS:
        return ServerError
    return _BY_CODE.get(code, APIError)


def _seconds(header: str | None) -> float | None:
    """Return Retry-After in seconds; the API server sends numbers, never dates."""
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
