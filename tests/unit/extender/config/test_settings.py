"""The configuration names file, field, value and what is allowed, and takes nothing else."""

from pathlib import Path

import pytest

from extender.config.settings import (
    LARGEST_CLUSTER,
    LONGEST_NAME_BYTES,
    ExtenderConfig,
    load,
    parse,
)
from muster.observability.configfile import ConfigError
from muster.placement.scoring.profiles import Profile, Scoring, Weights

HEAD = "apiVersion: muster.dev/v1alpha1\nkind: ExtenderConfiguration\n"


def test_the_defaults_are_valid() -> None:
    assert parse(HEAD.encode(), source="f") == ExtenderConfig()


def test_the_default_body_limit_fits_the_largest_cluster_with_the_longest_names() -> None:
    assert ExtenderConfig().body_limit_bytes > LARGEST_CLUSTER * LONGEST_NAME_BYTES


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("spareCuont: 2", ["spareCuont", "spareCount"]),
        ("listen: {prot: 1}", ["listen", "prot", "port"]),
        ("listen: {port: 70000}", ["listen.port", "70000", "65535"]),
        ("spareCount: two", ["spareCount", "int"]),
        ("spareCount: -1", ["spareCount", "-1", "0 to 7"]),
        ("pin: hard", ["pin", "hard"]),
        ("firstList: rows", ["firstList", "rows"]),
        ("kind: Other", ["kind", "Other"]),
        ("apiVersion: v1", ["apiVersion", "v1"]),
        ("levels: []", ["levels", "empty"]),
        ("levels: [a/b, a/b]", ["levels", "twice"]),
        ("levels: ['a b']", ["levels[0]", "a b"]),
        ("bodyLimitBytes: 1024", ["bodyLimitBytes", "1024"]),
        ("managed: {profil: x}", ["managed", "profil", "profile"]),
        ("managed: {rewrite: [default-scheduler]}", ["managed.rewrite", "default-scheduler"]),
        ("holdSeconds: .nan", ["holdSeconds"]),
        ("leaderElection: {leaseDuration: 1}", ["leaderElection", "leaseDurationSeconds"]),
        (
            "leaderElection: {leaseDurationSeconds: 14}",
            ["renewDeadlineSeconds + writeTimeoutSeconds = 10 + 4", "leaseDurationSeconds = 14"],
        ),
        (
            "leaderElection: {retryPeriodSeconds: 9}",
            ["renewDeadlineSeconds = 10", "retryPeriodSeconds = 10.8"],
        ),
        ("leaderElection: {writeTimeoutSeconds: 0}", ["writeTimeoutSeconds: 0", "0.1 to 600"]),
        ("leaderElection: {resourceName: ''}", ["leaderElection.resourceName", "empty"]),
        ("dump: {dir: /d}", ["dump", "dir", "directory"]),
        ("dump: {directory: dumps}", ["dump.directory", "'dumps'", "absolute", "/var/lib"]),
        ("dump: {keepFiles: 0}", ["dump.keepFiles", "1 to 100"]),
        ("draining: {settleSeconds: -1}", ["draining.settleSeconds", "-1", "0 to 86400"]),
        ("draining: {moreNotices: [{}]}", ["draining.moreNotices[0]", "exactly one of both"]),
        (
            "draining: {moreNotices: [{taint: a, condition: B}]}",
            ["draining.moreNotices[0]: taint 'a', condition 'B'", "exactly one of both"],
        ),
        (
            "draining: {moreNotices: [{taint: a, seconds: -5}]}",
            ["draining.moreNotices[0].seconds", "-5", "0 to 86400"],
        ),
        ("draining: {notice: true}", ["draining", "notice", "notices"]),
        ("story: {entries: -1}", ["story.entries", "0 to 500000"]),
        ("dump: {keepDecisions: 65}", ["dump.keepDecisions", "0 to 64"]),
        ("dump: {answerSeconds: -1}", ["dump.answerSeconds", "0 to 600"]),
        ("scoring: {profile: tight}", ["scoring", "profile", "tight"]),
        ("scoring: {gpuMemoryWeight: -1}", ["scoring.gpuMemoryWeight", "-1", "0 to 1000"]),
        ("scoring: {mostrequested.weight: 1001}", ["scoring.mostrequested.weight", "0 to 1000"]),
        ("scoring: {binpack.wieght: 1}", ["scoring", "binpack.wieght", "binpack.weight"]),
        ("scoring: {binpack.cpu: much}", ["scoring", "binpack.cpu", "float"]),
        (
            "scoring: {gpuMemoryWeight: 0, gpuComputeWeight: 0, interGPUCommsWeight: 0}",
            ["scoring", "one of them must be more"],
        ),
        ("[1, 2]", ["object"]),
        ("a: [", ["YAML"]),
    ],
)
def test_a_mistake_is_named_with_its_field_and_what_is_allowed(text: str, parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), source="muster.yaml")
    assert str(caught.value).startswith("muster.yaml: ")
    for part in parts:
        assert part in str(caught.value)


def test_times_of_an_election_that_is_not_held_do_not_matter() -> None:
    text = b"leaderElection: {leaderElect: false, leaseDurationSeconds: 1}"
    assert not parse(text, source="f").leader_election.leader_elect


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(b"spareCount: 9\nholdSeconds: 0", source="f")
    assert len(str(caught.value).splitlines()) == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent"):
        load(tmp_path / "absent.yaml")


def test_every_weight_of_volcanos_plugins_is_read_by_its_own_key() -> None:
    keys = {
        "gpuMemoryWeight": 2.0, "gpuComputeWeight": 3.0, "interGPUCommsWeight": 4.0,
        "binpack.weight": 5.0, "mostrequested.weight": 6.0, "leastrequested.weight": 7.0,
        "balancedresource.weight": 8.0, "binpack.cpu": 9.0, "binpack.memory": 10.0,
        "binpack.resources.nvidia.com/gpu": 11.0,
    }  # fmt: skip
    text = "".join(f"  {key}: {weight}\n" for key, weight in keys.items())
    found = parse(f"{HEAD}scoring:\n  profile: weighted\n{text}".encode(), source="f")
    assert found.scoring.as_scoring() == Scoring(Profile.WEIGHTED, Weights(*keys.values()))
