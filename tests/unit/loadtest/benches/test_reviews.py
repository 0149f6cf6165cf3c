"""The reviews of `muster bench webhook`: real in size, and with something for every rule to do."""

import json
from pathlib import Path

import msgspec

from loadtest.benches import reviews
from muster.injection.profiles import catalog, tiers
from muster.injection.subject import Facts
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating
from webhook.review.sharedanswers import impersonal, new_pod
from webhook.review.validation import ValidationRules
from webhook.review.wire import parse

POLICY = ManagedPolicy()


def known() -> Facts:
    cluster = catalog.parse_cluster(reviews.CLUSTER_PROFILE.encode(), str(Path("bench")))
    return Facts(cluster, catalog.load(), POLICY.accelerators, tiers.load())


def test_a_pod_has_the_size_of_real_ones() -> None:
    size = len(json.dumps(reviews.pod(0), separators=(",", ":")))
    assert 0.95 * reviews.POD_BYTES < size <= reviews.POD_BYTES


def test_every_rule_adds_something_and_nobody_is_warned() -> None:
    verdict, _ = admit_mutating(parse(reviews.review(3)), POLICY, ValidationRules(), known())
    patch = msgspec.json.encode(verdict.operations).decode()
    assert [word for word in reviews.INJECTED if word not in patch] == []
    assert verdict.warnings == ()


def test_pods_of_the_job_are_alike_and_those_alone_are_not() -> None:
    for alone, different in ((False, 1), (True, 8)):
        read = [new_pod(reviews.review(n, alone=alone)) for n in range(8)]
        assert len({impersonal(each.object) for each in read if each is not None}) == different
