"""Every fabric against what its vendor documents: a pod without network settings, and with."""

import pytest
from support.injections.fabricgoldens import FABRICS, Case, cases, documented, got

CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_pod_gets_what_the_vendor_documents_and_nothing_else(case: Case) -> None:
    assert got(case) == documented(case)


def test_every_fabric_has_a_case() -> None:
    assert {case.profile for case in CASES} == set(FABRICS)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_left_out_is_in_the_vendors_set_and_what_is_ours_is_not(case: Case) -> None:
    vendor = {e for c in case.after["spec"]["containers"] for e in c.get("env", {})}
    assert set(case.left) <= vendor
    assert not set(case.ours) & vendor
