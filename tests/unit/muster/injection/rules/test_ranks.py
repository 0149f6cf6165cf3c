"""The environment of torchrun: only what is certain, only where nobody else says it."""

import jsonpatch
import pytest
from support.injections.injecting import JSON, facts, gpu_pod, patch, result

from muster.kube import names

KNOWN = facts()
INDEX = "batch.kubernetes.io/job-completion-index"


def member(**spec: object) -> JSON:
    pod = gpu_pod(8, **spec)
    pod["metadata"]["labels"] = {INDEX: "3", "batch.kubernetes.io/job-name": "llama"}
    return pod


def variables(pod: JSON, size: int | None = 4) -> dict[str, JSON]:
    after = jsonpatch.apply_patch(pod, patch(result(pod, KNOWN, size=size)))
    return {env["name"]: env for env in after["spec"]["containers"][0].get("env", [])}


def test_a_member_of_an_indexed_job_knows_its_rank_and_the_size() -> None:
    env = variables(member(subdomain="llama-svc"))
    assert env["WORLD_SIZE"]["value"] == env["PET_NNODES"]["value"] == "4"
    assert env["MASTER_ADDR"]["value"] == "llama-0.llama-svc"
    assert env["MASTER_PORT"]["value"] == "29500"
    assert env["PET_NPROC_PER_NODE"]["value"] == "8"
    path = env["RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert path == f"metadata.labels['{INDEX}']"


def test_without_a_service_there_is_no_address_to_give() -> None:
    env = variables(member())
    assert "RANK" in env
    assert "MASTER_ADDR" not in env


def test_nothing_is_guessed_where_the_size_is_not_known() -> None:
    assert variables(member(), size=None) == {}


def test_a_container_that_says_anything_itself_is_left_alone() -> None:
    pod = member()
    pod["spec"]["containers"][0]["env"] = [{"name": "MASTER_ADDR", "value": "me"}]
    assert list(variables(pod)) == ["MASTER_ADDR"]


def test_the_pods_of_a_framework_are_the_frameworks() -> None:
    pod = member()
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "llama"
    assert variables(pod) == {}


@pytest.mark.parametrize("key", ["labels", "annotations"])
def test_a_gang_of_another_name_may_be_of_several_jobs_that_each_count_from_0(key: str) -> None:
    pod = member(subdomain="llama-svc")
    pod["metadata"].setdefault(key, {})[names.GANG] = "both"
    assert variables(pod) == {}


def test_a_gang_that_is_called_as_its_job_is_that_job() -> None:
    pod = member()
    pod["metadata"]["labels"][names.GANG] = "llama"
    assert variables(pod)["WORLD_SIZE"]["value"] == "4"


def test_members_of_several_kinds_have_no_common_size() -> None:
    pod = member()
    pod["metadata"]["labels"] |= {names.GANG: "llama", names.ROLE: "trainer"}
    assert variables(pod) == {}


def test_a_statefulset_may_count_from_anywhere() -> None:
    pod = member()
    pod["metadata"]["labels"] = {"apps.kubernetes.io/pod-index": "3"}
    assert variables(pod) == {}
