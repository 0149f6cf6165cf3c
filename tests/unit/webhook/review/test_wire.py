"""The wire: whatever comes in, what goes out is a reply the API server accepts."""

import base64
import json
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.injection.patching.operations import Operation
from webhook.errors import MalformedReview
from webhook.review.wire import Verdict, denied, parse, respond

GOOD = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "userInfo": {"username": "admin", "uid": "0", "groups": ["a"], "extra": {"k": ["v"]}},
        "object": {"metadata": {}, "unknown": [1]},
    },
}


def test_a_review_is_read_with_its_unknown_fields_left_alone() -> None:
    request = parse(json.dumps(GOOD).encode())
    assert request.uid == "705ab4f5-6393-11e8-b7cc-42010a800002"
    assert request.user_info.groups == ("a",)
    assert json.loads(bytes(request.object)) == {"metadata": {}, "unknown": [1]}
    assert bytes(request.old_object) == b"null"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"[]",
        b"\xff",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        json.dumps(GOOD | {"apiVersion": "admission.k8s.io/v1beta1"}).encode(),
        json.dumps(GOOD | {"request": {**GOOD["request"], "operation": "PATCH"}}).encode(),
        json.dumps(GOOD | {"request": {**GOOD["request"], "uid": 5}}).encode(),
        json.dumps(GOOD)[:-3].encode(),
        b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_is_no_review_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedReview, match=r"^body is not an admission\.k8s\.io/v1"):
        parse(body)


def test_a_patch_travels_as_base64_of_rfc_6902() -> None:
    verdict = Verdict(operations=(Operation("/metadata/annotations", {"a": "b"}),))
    reply = json.loads(respond("u", verdict))
    response = reply["response"]
    assert (reply["apiVersion"], reply["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert (response["uid"], response["allowed"]) == ("u", True)
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}
    ]


def test_without_a_patch_there_is_no_patch_type() -> None:
    assert json.loads(respond("u", Verdict()))["response"] == {"uid": "u", "allowed": True}


def test_a_refusal_carries_code_and_message_and_never_a_patch() -> None:
    verdict = denied(HTTPStatus.FORBIDDEN, "not you")
    response = json.loads(respond("u", verdict))["response"]
    status = {"code": 403, "message": "not you", "reason": "Forbidden"}
    assert response == {"uid": "u", "allowed": False, "status": status}


@given(st.lists(st.text(max_size=2000), max_size=40))
def test_warnings_are_short_printable_and_few(warnings: list[str]) -> None:
    response = json.loads(respond("u", Verdict(warnings=tuple(warnings))))["response"]
    for warning in response.get("warnings", []):
        assert len(warning) <= 256
        assert warning.isprintable()
    assert len(response.get("warnings", [])) <= 16


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)
edits = st.dictionaries(st.sampled_from([*GOOD["request"], "name", "namespace"]), values)


@given(edits)
def test_any_review_is_read_or_named_malformed(edit: dict[str, object]) -> None:
    body = json.dumps(GOOD | {"request": {**GOOD["request"], **edit}}).encode()
    try:
        request = parse(body)
    except MalformedReview:
        return
    assert json.loads(respond(request.uid, Verdict()))["response"]["uid"] == request.uid
