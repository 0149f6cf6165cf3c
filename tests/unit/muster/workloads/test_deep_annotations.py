"""Annotations that are JSON as deep as nobody writes it: any user may, no reader may end of it.

The extender reads them from its watch, so an error there would end it, and it would end again after
each start for as long as the pod is there.
"""

import pytest
from support.pods.jsonpods import pod

from muster.workloads.registry import errors, place_or_single

DEEP = "[" * 20_000 + "]" * 20_000
KOORDINATOR = {"pod-group.scheduling.sigs.k8s.io": "g"}
YUNIKORN = {"applicationId": "a"}
CASES = [
    ("gang.scheduling.koordinator.sh/groups", KOORDINATOR),
    ("gang.scheduling.koordinator.sh/network-topology-spec", KOORDINATOR),
    ("kueue.x-k8s.io/podset-slice-required-topology-constraints", {}),
    ("yunikorn.apache.org/task-groups", YUNIKORN),
    ("k8s.v1.cni.cncf.io/networks", {}),
    ("muster.dev/plan", {}),
    ("scheduling.koordinator.sh/device-allocate-hint", {}),
]
FORMS = [DEEP, f'[{{"name": "x", "y": {DEEP}}}]', f'{{"x": {DEEP}}}', DEEP[:20_000]]


@pytest.mark.parametrize(("key", "labels"), CASES)
@pytest.mark.parametrize("form", range(len(FORMS)))
def test_deep_json_is_read_as_what_cannot_be_read(
    key: str, labels: dict[str, str], form: int
) -> None:
    notes = {key: FORMS[form]}
    if labels == YUNIKORN:
        notes["yunikorn.apache.org/task-group-name"] = "t"
    if labels == KOORDINATOR:
        notes |= {"gang.scheduling.koordinator.sh/name": "g"}
        notes |= {"gang.scheduling.koordinator.sh/min-available": "2"}
    found = pod(labels=labels, metadata={"annotations": notes})
    assert place_or_single(found).member.key
    assert all(
        len(str(error)) < 100_000 for error in errors(found, levels=("kubernetes.io/hostname",))
    )
