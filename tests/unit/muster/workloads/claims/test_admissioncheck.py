"""What is wrong with the AdmissionChecks that a ClusterQueue names."""

import msgspec

from muster.kube import wire
from muster.workloads.claims.admissioncheck import AdmissionCheck, missing_checks


def check(name: str, *conditions: wire.Condition) -> AdmissionCheck:
    body = {
        "metadata": {"name": name},
        "spec": {"controllerName": "example.com/budget"},
        "status": {"conditions": [msgspec.to_builtins(one) for one in conditions]},
    }
    return msgspec.convert(body, AdmissionCheck)


ACTIVE = wire.Condition("Active", "True", "Active", "ready to answer")
AWAY = wire.Condition("Active", "False", "Inactive", "the budget service is away")


def test_a_queue_whose_checks_are_active_lacks_nothing() -> None:
    known = {"budget": check("budget", ACTIVE), "other": check("other", AWAY)}
    assert missing_checks("a", ["budget"], known) is None
    assert missing_checks("a", [], known) is None


def test_a_check_that_does_not_exist_is_named_with_the_field_that_names_it() -> None:
    found = missing_checks("a", ["budgt", "alpha"], {"budget": check("budget", ACTIVE)})
    assert found is not None
    assert (found.is_ready, found.reason) == (False, "AdmissionCheckNotFound")
    assert found.message == (
        "references missing AdmissionCheck(s): alpha,budgt: create them, or name others in"
        " spec.admissionChecksStrategy.admissionChecks of ClusterQueue a"
    )


def test_a_check_that_is_not_active_is_named_with_what_its_controller_says() -> None:
    known = {"budget": check("budget", AWAY), "silent": check("silent")}
    found = missing_checks("a", ["budget", "silent"], known)
    assert found is not None
    assert found.reason == "AdmissionCheckInactive"
    assert found.message == (
        "references inactive AdmissionCheck(s): budget,silent (budget: the budget service is away;"
        " silent: example.com/budget has not spoken): have their controllers set condition Active"
        " to True, or name others in spec.admissionChecksStrategy.admissionChecks of ClusterQueue a"
    )


def test_the_first_reason_is_that_a_check_does_not_exist() -> None:
    found = missing_checks("a", ["budget", "budgt"], {"budget": check("budget", AWAY)})
    assert found is not None
    assert found.reason == "AdmissionCheckNotFound"
    assert "missing AdmissionCheck(s): budgt:" in found.message
    assert "inactive AdmissionCheck(s): budget (" in found.message
