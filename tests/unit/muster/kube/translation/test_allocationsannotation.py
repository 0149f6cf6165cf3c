"""The annotation in which a node's device plugin tells what the kubelet gave to whom."""

from itertools import permutations

import pytest

from muster.kube.translation.allocationsannotation import (
    LIMIT_BYTES,
    VERSION,
    AllocationsError,
    decode,
    encode,
)

GPU = "nvidia.com/gpu"


def uid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012}"


def eight_gpus(number: int) -> tuple[str, dict[str, list[str]]]:
    gpus = [f"GPU-00000000-0000-4000-8000-{number:010}{gpu:02}" for gpu in range(8)]
    return uid(number), {GPU: gpus}


def test_what_was_written_is_read_back_sorted() -> None:
    told = decode(encode(7, [(uid(1), {GPU: ["GPU-b", "GPU-a"], "rdma/hca": ["mlx5_0"]})]))
    assert (told.version, told.generation, told.left_out) == (VERSION, 7, 0)
    assert told.pods == {uid(1): {GPU: ("GPU-a", "GPU-b"), "rdma/hca": ("mlx5_0",)}}


def test_the_text_is_compact_and_names_its_version_first() -> None:
    assert encode(7, [("u", {GPU: ["GPU-a"]})]) == (
        '{"version":1,"generation":7,"pods":{"u":{"nvidia.com/gpu":["GPU-a"]}}}'
    )


def test_the_same_facts_give_the_same_text_in_any_order() -> None:
    facts = [("b", {GPU: ["2", "1"]}), ("a", {"z": ["3"], GPU: ["0"]}), ("c", {GPU: ["4"]})]
    assert len({encode(1, order) for order in permutations(facts)}) == 1


def test_a_replica_is_named_once_for_each_that_the_pod_has() -> None:
    told = decode(encode(1, [("u", {f"{GPU}.shared": ["GPU-a", "GPU-b", "GPU-a"]})]))
    assert told.pods["u"][f"{GPU}.shared"] == ("GPU-a", "GPU-a", "GPU-b")


def test_pods_without_devices_are_not_written() -> None:
    told = decode(encode(1, [("u", {}), ("v", {GPU: []}), ("w", {GPU: ["GPU-a"]})]))
    assert (set(told.pods), told.left_out) == ({"w"}, 0)


@pytest.mark.parametrize("pods", [1, 200, 1500])
def test_the_text_never_has_more_bytes_than_its_limit_and_says_who_is_missing(pods: int) -> None:
    text = encode(1, map(eight_gpus, range(pods)))
    told = decode(text)
    assert len(text.encode()) <= LIMIT_BYTES
    assert len(told.pods) + told.left_out == pods
    assert list(told.pods) == [uid(number) for number in range(len(told.pods))]
    assert bool(told.left_out) is (pods > 240)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "truncated"),
        ("[]", "Expected `object`"),
        ("[" * 100_000, "Expected `object`"),
        ('{"generation":1,"pods":{}}', "missing required field `version`"),
        ('{"version":2,"pods":[]}', "version is 2; this release of Muster reads 1"),
        ('{"version":1,"generation":-1,"pods":{}}', "generation"),
        ('{"version":1,"generation":1,"pods":{"":{}}}', "pods"),
        ('{"version":1,"generation":1,"pods":{"u":{"r":"GPU-a"}}}', "Expected `array`"),
        ('{"version":1,"generation":1,"pods":{"u":{"r":[""]}}}', "length >= 1"),
    ],
)
def test_what_nobody_can_have_written_is_refused_with_the_place(text: str, why: str) -> None:
    with pytest.raises(AllocationsError, match=why):
        decode(text)
