"""The reviews of `muster bench webhook`: real in size, and with something for every rule to do."""

import json
from pathlib import Path

import msgspec

from injection import catalog, placesdata
from injection.subject import Facts
from loadtest import reviews
from webhook.admit import admit_mutating
from webhook.alike import impersonal, new_pod
from webhook.review import parse
from webhook.validate import Rules
from workloads.managed import Policy

POLICY = Policy()


def known() -> Facts:
    cluster = catalog.parse_cluster(reviews.CLUSTER_PROFILE.encode(), str(Path("bench")))
    return Facts(cluster, catalog.load(), POLICY.accelerators, placesdata.load())


def test_a_pod_has_the_size_of_real_ones() -> None:
    size = len(json.dumps(reviews.pod(0), separators=(",", ":")))
    assert 0.95 * reviews.POD_BYTES < size <= reviews.POD_BYTES


def test_every_rule_adds_something_and_nobody_is_warned() -> None:
    verdict, _ = admit_mutating(parse(reviews.review(3)), POLICY, Rules(), known())
    patch = msgspec.json.encode(verdict.operations).decode()
    assert [word for word in reviews.INJECTED if word not in patch] == []
    assert verdict.warnings == ()


def test_pods_of_the_job_are_alike_and_those_alone_are_not() -> None:
    for alone, different in ((False, 1), (True, 8)):
        read = [new_pod(reviews.review(n, alone=alone)) for n in range(8)]
        assert len({impersonal(each.object) for each in read if each is not None}) == different
