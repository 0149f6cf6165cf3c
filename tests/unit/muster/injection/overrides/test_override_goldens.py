"""Whole cases: policies, owners and a pod in, the patch of each cluster out."""

from pathlib import Path

import msgspec
import pytest
from support.injections.overriding import JSON, after, loaded, owned, patch, result
from support.machine import quickyaml

from muster.injection.overrides.owners import Owner
from muster.injection.overrides.targets import Identity

FILES = sorted((Path(__file__).parents[4] / "data" / "overrides").glob("*.yaml"))
CASES = [
    (file.stem, cluster, case)
    for file in FILES
    for case in [quickyaml.load(file.read_text(encoding="utf-8"))]
    for cluster in case["patches"]
]
LEDGER = "/metadata/annotations/muster.dev~1injected"


def owner(given: JSON) -> Owner:
    known = {"apiVersion": "api_version"}
    return msgspec.convert({known.get(k, k): v for k, v in given.items()}, Owner)


@pytest.mark.parametrize(
    ("cluster", "case"), [c[1:] for c in CASES], ids=[f"{c[0]}-{c[1]}" for c in CASES]
)
def test_the_patch_is_the_one_that_is_written_down(cluster: str, case: JSON) -> None:
    identity = msgspec.convert(case["clusters"][cluster], Identity)
    pod, owners = owned(case["pod"], *(owner(given) for given in case["owners"]))
    policies = loaded(*case["policies"])
    after(pod, policies, owners, cluster=identity)  # twice is once
    found = result(pod, policies, owners, cluster=identity)
    made = [] if found is None else patch(found)
    if made:
        assert made.pop()["path"] == LEDGER
        if made[-1]["path"] == "/metadata/annotations":  # made for the ledger
            made.pop()
    assert made == case["patches"][cluster]
