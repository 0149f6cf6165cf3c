import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube import errors


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.VersionExpired),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
        (418, "", errors.APIError),
    ],
)
def test_every_status_has_its_class(code: int, reason: str, kind: type[errors.APIError]) -> None:
    body = json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "why"})
    found = errors.from_response(code, body.encode())
    assert type(found) is kind
    assert "why" in str(found)


def test_the_servers_wish_to_wait_comes_from_the_header_or_the_details() -> None:
    body = json.dumps({"details": {"retryAfterSeconds": 3}}).encode()
    assert errors.from_response(429, body).retry_after == 3.0
    assert errors.from_response(429, body, retry_after="9").retry_after == 9.0
    assert errors.from_response(429, b"{}", retry_after="Wed, 21 Oct").retry_after is None


def test_the_fields_the_server_objects_to_are_named() -> None:
    causes = [{"field": "metadata.uid", "reason": "FieldValueInvalid"}]
    body = json.dumps({"details": {"causes": causes}}).encode()
    assert errors.from_response(422, body).fields == ("metadata.uid",)


@given(st.integers(300, 599), st.binary(max_size=2000))
def test_any_answer_becomes_an_error_of_bounded_length(code: int, body: bytes) -> None:
    found = errors.from_response(code, body)
    assert found.code == code
    assert len(str(found)) < 1000
