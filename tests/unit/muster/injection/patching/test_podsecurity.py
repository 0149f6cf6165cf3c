"""In a namespace that enforces a level only what the level allows is added."""

from dataclasses import replace

import jsonpatch
import pytest
from support.injections.injecting import JSON, facts, gpu_pod, patch, result

ROCE = facts({"profile": "generic-roce-hostnet"})


def enforced(level: str) -> tuple[JSON, tuple[str, ...]]:
    known = replace(ROCE, namespaces={"team-a": {"pod-security.kubernetes.io/enforce": level}})
    said = result(gpu_pod(), known)
    return jsonpatch.apply_patch(gpu_pod(), patch(said)), said.warnings


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_what_the_level_forbids_is_left_out_and_told(level: str) -> None:
    after, warnings = enforced(level)
    assert "hostNetwork" not in after["spec"]
    assert "securityContext" not in after["spec"]["containers"][0]
    assert "hostNetwork, IPC_LOCK" in warnings[0]
    assert level in warnings[0]


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_what_it_allows_is_still_added(level: str) -> None:
    after, _ = enforced(level)
    assert after["spec"]["containers"][0]["resources"]["limits"]["rdma/roce_v2"] == "1"
    assert after["spec"]["volumes"][0]["emptyDir"]["medium"] == "Memory"


def test_a_privileged_namespace_gets_everything_and_hears_nothing() -> None:
    after, warnings = enforced("privileged")
    assert after["spec"]["hostNetwork"] is True
    assert warnings == ()


def test_a_word_that_is_no_level_counts_as_the_strictest() -> None:
    assert "hostNetwork" not in enforced("nonsense")[0]["spec"]
