"""What holds for every pod on every fabric: it applies, twice is once, the user's stays."""

import json
from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from support.injections.injecting import FABRICS, GPU, JSON, facts, gpu_pod, injected, patch, result
from support.pods.anypods import PODS, without_additions

from muster.injection.subject import Facts

TOLERATED = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]


def _cluster(profile: str, channel: str, pool: dict[str, str]) -> Facts:
    """A cluster with one fabric in a pool, all its options on, and sockets for the rest."""
    choice = {"profile": profile, "channel": channel, "nodeLabels": pool, "pods": "accelerated"}
    rest = {"profile": "plain-tcp", "pods": "accelerated"}
    options = sorted(FABRICS[profile].options)
    return facts({**choice, "options": options}, rest, tolerations=TOLERATED)


CLUSTERS = st.sampled_from(
    [_cluster(*each) for each in product(FABRICS, ("env", "file"), ({}, {"pool": "a"}))]
)


@given(PODS, CLUSTERS)
def test_a_patch_always_applies_and_a_second_one_is_empty(pod: JSON, cluster: Facts) -> None:
    after = injected(pod, cluster)
    assert patch(result(after, cluster)) == []


@given(PODS, CLUSTERS)
def test_nothing_that_the_user_wrote_is_lost(pod: JSON, cluster: Facts) -> None:
    after = injected(pod, cluster)
    assert without_additions(pod, after), (pod, after)


@given(PODS, CLUSTERS)
def test_no_name_is_there_twice_afterwards(pod: JSON, cluster: Facts) -> None:
    spec = injected(pod, cluster)["spec"]
    for kind in ("volumes", "resourceClaims"):
        _once([item["name"] for item in spec.get(kind, [])])
    for container in spec["containers"]:
        _once([mount["mountPath"].rstrip("/") for mount in container.get("volumeMounts", [])])
        _once([env["name"] for env in container.get("env", [])])


@given(PODS, CLUSTERS)
def test_pods_of_one_role_are_changed_alike(pod: JSON, cluster: Facts) -> None:
    """Kueue hashes containers, selectors, tolerations and claims of a role (kueue pkg/util/pod)."""
    other = json.loads(json.dumps(pod))
    other["metadata"]["name"] = "p-1"
    assert patch(result(pod, cluster)) == patch(result(other, cluster))


def test_a_pod_that_is_full_of_annotations_is_still_accepted_with_all_that_it_needs() -> None:
    """The API server takes 256 KiB of them in all; the ledger is what can be spared."""
    cluster = facts({"profile": "generic-roce-hostnet", "pods": "accelerated"})
    for room, told in ((32 * 1024, True), (200, False)):
        pod = gpu_pod()
        pod["metadata"]["annotations"] = {"note": "é" * ((256 * 1024 - room) // 2)}
        said = result(pod, cluster)
        after = injected(pod, cluster)
        notes = after["metadata"]["annotations"]
        assert sum(len(f"{k}{v}".encode()) for k, v in notes.items()) <= 256 * 1024
        assert ("muster.dev/injected" in notes) is told
        assert any("262144 bytes" in warning for warning in said.warnings) is not told
        assert after["spec"]["containers"][0]["env"]
        assert patch(result(after, cluster)) == []


def _once(names: list[str]) -> None:
    assert len(names) == len(set(names)), names
