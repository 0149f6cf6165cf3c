"""The wire of admission: ``admission.k8s.io/v1 AdmissionReview`` in, the same kind out.

What makes a reply invalid to the API server (apiserver, webhook/request/
admissionreview.go): another uid, another kind or version, a patch without its type, any
patch from a validating webhook. Replies are made in one place, here, so none can.
"""

import base64
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Generic, Literal, TypeVar

import msgspec

from muster.injection.patching.operations import Operation
from webhook.errors import MalformedReview, cut

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
WARNING_CHARS: Final = 256  # admission/v1: longer warnings may be cut by the API server
MESSAGE_CHARS: Final = 4096  # of a refusal; what is refused is quoted, and may be megabytes
WARNINGS_AT_MOST: Final = 16  # the API server keeps 4096 characters of all of them together


class GroupVersionKind(msgspec.Struct, frozen=True, gc=False):
    """Which kind the object has."""

    group: str = ""
    version: str = ""
    kind: str = ""


class GroupVersionResource(msgspec.Struct, frozen=True, gc=False):
    """Which resource the request is for."""

    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(msgspec.Struct, frozen=True, gc=False):
    """Who asks, as the API server authenticated them."""

    username: str = ""
    groups: tuple[str, ...] = ()


class Asked(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True):
    """What a request is about, without its objects."""

    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = UserInfo()
    dry_run: bool = False


class AdmissionRequest(Asked, frozen=True, gc=False, rename="camel", kw_only=True):
    """One request. Objects stay undecoded until it is known what they are."""

    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


RequestT = TypeVar("RequestT")


class Review(msgspec.Struct, Generic[RequestT], frozen=True, gc=False, rename="camel"):
    """What the API server sends."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: RequestT


class _Status(msgspec.Struct, gc=False):
    code: int
    message: str
    reason: str


class _Response(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    uid: str
    allowed: bool = msgspec.field()
    patch_type: str | None = None
    patch: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    status: _Status | None = None
    warnings: tuple[str, ...] = ()


class _Reply(msgspec.Struct, gc=False, rename="camel"):
    api_version: str
    kind: str
    response: _Response


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is answered. ``code`` and ``message`` count only where it is not allowed."""

    allowed: bool = True
    operations: tuple[Operation, ...] = ()
    code: HTTPStatus = HTTPStatus.OK
    message: str = ""
    warnings: tuple[str, ...] = ()
    patch: msgspec.Raw | None = None  # ``operations`` as they travel, where they are encoded


ALLOWED: Final = Verdict()
# What bytes that cannot be decoded raise: bad JSON and types, too deep, not UTF-8.
UNREADABLE: Final = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_DECODER: Final = msgspec.json.Decoder(Review[AdmissionRequest])
_ENCODER: Final = msgspec.json.Encoder()


def parse(body: bytes) -> AdmissionRequest:
    """Read a review; raises ``MalformedReview`` with what is wrong and where."""
    try:
        return _DECODER.decode(body).request
    except UNREADABLE as error:
        raise MalformedReview(f"body is not an {API_VERSION} {KIND}: {error}") from error


def respond(uid: str, verdict: Verdict) -> bytes:
    """Return the reply to the request of that uid."""
    response = _Response(
        uid=uid,
        allowed=verdict.allowed,
        warnings=tuple(map(_clean, verdict.warnings[:WARNINGS_AT_MOST])),
    )
    if verdict.operations and verdict.allowed:
        response.patch_type = "JSONPatch"
        ready = verdict.patch
        response.patch = encoded(verdict.operations) if ready is None else ready
    if not verdict.allowed:
        message = cut(verdict.message, MESSAGE_CHARS)
        response.status = _Status(verdict.code, message, verdict.code.phrase)
    return _ENCODER.encode(_Reply(API_VERSION, KIND, response))


def encoded(operations: tuple[Operation, ...]) -> msgspec.Raw:
    """Return a patch as it travels, a JSON string: base64 has nothing that is to be escaped."""
    return msgspec.Raw(b'"%b"' % base64.b64encode(_ENCODER.encode(operations)))


def denied(code: HTTPStatus, message: str, warnings: tuple[str, ...] = ()) -> Verdict:
    """Return a refusal; the API server shows ``message`` to the user."""
    return Verdict(allowed=False, code=code, message=message, warnings=warnings)


def _clean(warning: str) -> str:
    """Return a warning the API server will not drop: no control characters, not too long."""
    plain = warning.isprintable()
    text = warning if plain else "".join([c if c.isprintable() else " " for c in warning])
    return cut(text, WARNING_CHARS)
