"""One decision for pods that are alike: it is the one that each would have had alone."""

import copy
import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from support.anypods import PODS
from support.injecting import facts

from injection.alike import KEPT, impersonal, keep
from injection.podview import PodView
from injection.run import decide, inject
from injection.subject import Facts, Gang

INDEX = "batch.kubernetes.io/job-completion-index"
GANG = Gang("muster", 4)
KNOWN = facts({"profile": "generic-roce-hostnet"}, {"profile": "gke-tcpxo"}, tolerations=[{}])


def view(pod: dict[str, Any]) -> PodView:
    return msgspec.json.decode(json.dumps(pod), type=PodView)


def member(pod: dict[str, Any], number: int) -> dict[str, Any]:
    """The pod as one of a job's: numbered, and with a token of its own."""
    made = copy.deepcopy(pod)
    token = f"kube-api-access-{number:05d}"
    made["metadata"] |= {"name": f"job-{number}", "uid": f"u-{number}"}
    made["metadata"].setdefault("labels", {})[INDEX] = str(number)
    made["spec"] |= {"hostname": f"job-{number}", "subdomain": "job"}
    made["spec"].setdefault("volumes", []).append({"name": token})
    for container in made["spec"]["containers"]:
        at = {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        container.setdefault("volumeMounts", []).append(at)
    return made


def fresh(known: Facts) -> Facts:
    return Facts(known.cluster, known.fabrics, known.accelerators, known.places)


@given(pod=PODS, number=st.integers(0, 99_999))
def test_what_is_left_out_changes_no_decision(pod: dict[str, Any], number: int) -> None:
    one = view(member(pod, number))
    assert decide(impersonal(one), "team-a", KNOWN, GANG) == decide(one, "team-a", KNOWN, GANG)


@given(pods=st.lists(PODS, min_size=1, max_size=4), numbers=st.lists(st.integers(0, 9), min_size=8))
def test_a_remembered_decision_is_the_one_a_pod_would_have_had_alone(
    pods: list[dict[str, Any]], numbers: list[int]
) -> None:
    known = fresh(KNOWN)
    for step, number in enumerate(numbers):
        one = view(member(pods[step % len(pods)], number))
        gang = GANG if number % 2 else Gang("muster", 8)
        beside = {"note": str(number % 3)}
        expected = decide(one, "team-a", fresh(KNOWN), gang, beside)
        assert inject(one, "team-a", known, gang, beside) == expected


def test_members_of_one_job_share_their_decision() -> None:
    pod = {"metadata": {}, "spec": {"containers": [{"resources": {"limits": {"amd.com/gpu": 8}}}]}}
    known = fresh(KNOWN)
    first, second = (inject(view(member(pod, n)), "team-a", known, GANG) for n in (1, 2))
    assert second is first
    assert inject(view(member(pod, 1)), "team-b", known, GANG) is not first


def test_no_more_than_so_many_decisions_are_remembered() -> None:
    kept: dict[Any, object] = {}
    for number in range(3 * KEPT):
        keep(kept, number, number)
    assert list(kept) == list(range(2 * KEPT, 3 * KEPT))
