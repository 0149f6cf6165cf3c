"""Errors in the shape of ``meta/v1 Status``, as the real server words them."""

from dataclasses import dataclass
from typing import Final

import orjson

from loadtest.testbed.client.wirejson import JsonObject

_CAUSES: Final = {
    "Invalid value": "FieldValueInvalid",
    "Forbidden": "FieldValueForbidden",
    "Required value": "FieldValueRequired",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
}


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One finding of validation; ``kind`` is a key of upstream's field.ErrorType texts."""

    kind: str
    field: str
    detail: str
    value: object = None

    def message(self) -> str:
        """Word it like apimachinery's ``field.Error.ErrorBody``."""
        if self.kind in ("Forbidden", "Required value"):
            return f"{self.kind}: {self.detail}" if self.detail else self.kind
        shown = orjson.dumps(self.value).decode()
        return f"{self.kind}: {shown}: {self.detail}" if self.detail else f"{self.kind}: {shown}"

    def cause(self) -> JsonObject:
        """Return the ``StatusCause``."""
        return {"reason": _CAUSES[self.kind], "message": self.message(), "field": self.field}


class StatusError(Exception):
    """A refusal; carries the Status object that the client gets."""

    def __init__(
        self, code: int, reason: str, message: str, details: JsonObject | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            **({"reason": reason} if reason else {}),
            **({"details": details} if details is not None else {}),
            "code": code,
        }

    def body(self) -> bytes:
        """Encode the Status object."""
        return orjson.dumps(self.status)


def success(details: JsonObject | None = None, code: int = 0) -> JsonObject:
    """Return a Status that reports success (deletions, bindings)."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        **({"details": details} if details else {}),
        **({"code": code} if code else {}),
    }


def _details(plural: str, group: str, name: str) -> JsonObject:
    named = {"name": name} if name else {}
    return {**named, **({"group": group} if group else {}), "kind": plural}


def _qualified(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def not_found(plural: str, group: str, name: str) -> StatusError:
    """404 for an object."""
    message = f'{_qualified(plural, group)} "{name}" not found'
    return StatusError(404, "NotFound", message, _details(plural, group, name))


def unknown_path() -> StatusError:
    """404 for a resource that is not served."""
    message = "the server could not find the requested resource"
    return StatusError(404, "NotFound", message, {})


def already_exists(plural: str, group: str, name: str) -> StatusError:
    """409 for a name that is taken."""
    message = f'{_qualified(plural, group)} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _details(plural, group, name))


def conflict(plural: str, group: str, name: str, why: str) -> StatusError:
    """409 for a write that lost a race."""
    message = f'Operation cannot be fulfilled on {_qualified(plural, group)} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(plural, group, name))


MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def invalid(kind: str, group: str, name: str, problems: list[FieldProblem]) -> StatusError:
    """422 with one cause for each finding."""
    texts = [f"{p.field}: {p.message()}" for p in problems]
    body = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    qualified = f"{kind}.{group}" if group else kind
    details = _details(kind, group, name) | {"causes": [p.cause() for p in problems]}
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {body}', details)


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(400, "BadRequest", message)


def expired(message: str) -> StatusError:
    """410: the version asked for is gone from the history."""
    return StatusError(410, "Expired", message)


def method_not_allowed() -> StatusError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def unsupported_media(allowed: list[str]) -> StatusError:
    """415: the body's format."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(allowed)
    )
    return StatusError(415, "UnsupportedMediaType", message, {})


def unauthorized() -> StatusError:
    """401."""
    return StatusError(401, "Unauthorized", "Unauthorized")
