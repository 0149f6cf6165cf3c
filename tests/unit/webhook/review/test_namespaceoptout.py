"""Who may label a namespace ``muster.dev/managed``."""

import json
from typing import Any

import pytest

from webhook.registration.configurations import Target, configurations
from webhook.review.admission import admit_validating
from webhook.review.validation import ValidationRules
from webhook.review.wire import AdmissionRequest, Verdict, parse

JSON = dict[str, Any]
GUARDED = ValidationRules(opt_out_groups=frozenset({"platform"}))
OUT = {"muster.dev/managed": "false"}


def request(new: JSON | None, old: JSON | None, *groups: str, **also: str) -> AdmissionRequest:
    def namespace(labels: JSON | None) -> JSON | None:
        return None if labels is None else {"metadata": {"name": "team-a", "labels": labels}}

    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"version": "v1", "kind": "Namespace"},
            "resource": {"version": "v1", "resource": "namespaces"},
            "operation": "CREATE" if old is None else "UPDATE",
            "name": "team-a",
            "userInfo": {"username": "ada", "groups": groups},
            "object": namespace(new),
            "oldObject": namespace(old),
            **also,
        },
    }
    return parse(json.dumps(review).encode())


def verdict(
    new: JSON | None, old: JSON | None, *groups: str, rules: ValidationRules = GUARDED, **also: str
) -> Verdict:
    return admit_validating(request(new, old, *groups, **also), rules)


@pytest.mark.parametrize(
    ("new", "old"), [(OUT, None), (OUT, {}), ({}, OUT), ({"muster.dev/managed": "true"}, OUT)]
)
def test_only_the_groups_that_are_named_set_change_or_remove_the_label(
    new: JSON, old: JSON | None
) -> None:
    refused = verdict(new, old, "staff")
    assert not refused.allowed
    assert refused.code == 403
    assert refused.message == (
        "metadata.labels[muster.dev/managed]: may not be set, changed or removed by user "
        '"ada": ask a member of platform'
    )
    assert verdict(new, old, "staff", "platform").allowed
    assert verdict(new, old, "staff", rules=ValidationRules()).allowed  # nobody is named: no guard


@pytest.mark.parametrize(("new", "old"), [({}, None), (OUT, OUT), ({**OUT, "a": "b"}, OUT)])
def test_what_leaves_the_label_as_it_is_is_anybodys(new: JSON, old: JSON | None) -> None:
    assert verdict(new, old, "staff").allowed


def test_a_namespace_goes_whoever_deletes_it() -> None:
    assert verdict(None, OUT, operation="DELETE").allowed


def test_the_api_server_is_told_to_ask_only_where_somebody_is_named_and_fails_closed() -> None:
    names = [
        hook.name for hook in configurations(b"", Target(), rules=ValidationRules())[1].webhooks
    ]
    assert "namespaces.validate.muster.dev" not in names
    hooks = configurations(b"", Target(), rules=GUARDED)[1].webhooks
    (guard,) = (hook for hook in hooks if hook.name == "namespaces.validate.muster.dev")
    assert guard.failure_policy == "Fail"
    (condition,) = guard.match_conditions
    assert '"muster.dev/managed"' in condition.expression
