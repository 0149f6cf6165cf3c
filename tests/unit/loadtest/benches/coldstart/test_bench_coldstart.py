"""The cold start's cluster is what it says, and the benchmark starts a real extender on it."""

import pytest

from loadtest.benches.coldstart import bench
from loadtest.benches.coldstart.objects import DAEMONS, Fleet
from muster.kube.resources import NODES, PODS
from muster.kube.watching.frames import Codec
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.registry import place


@pytest.mark.parametrize(("nodes", "pods"), [(3, 2), (40, 400), (10, 70)])
def test_every_object_decodes_and_no_two_share_a_uid(nodes: int, pods: int) -> None:
    fleet = Fleet(nodes, pods)
    listed = [Codec(PODS).object(fleet.pod(number)) for number in range(pods)]
    hosts = [Codec(NODES).object(fleet.node(number)) for number in range(nodes)]
    assert len({pod.metadata.uid for pod in listed}) == pods
    names = {host.metadata.name for host in hosts}
    assert len(names) == nodes
    assert {pod.spec.node_name for pod in listed} <= names


def test_each_host_has_its_daemons_and_one_pod_of_a_gang() -> None:
    fleet = Fleet(40, 400)
    listed = [Codec(PODS).object(fleet.pod(number)) for number in range(400)]
    placed = [found for pod in listed if (found := place(pod)) is not None and found.explicit]
    managed = [pod for pod in listed if ManagedPolicy().is_managed(pod, {})]
    assert len(managed) == len(placed) == fleet.workers == 40
    assert len({pod.spec.node_name for pod in managed}) == 40
    daemons = [p for p in listed if p.metadata.owner_references[0].kind == "DaemonSet"]
    assert len(daemons) == 40 * len(DAEMONS)


def test_pages_come_in_the_order_of_namespace_and_name() -> None:
    fleet = Fleet(40, 400)
    listed = [Codec(PODS).object(fleet.pod(number)).metadata for number in range(400)]
    namespaces = [meta.namespace for meta in listed]
    assert namespaces == sorted(namespaces)


def test_a_cluster_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="0 nodes"):
        Fleet(0, 5)


@pytest.mark.parametrize("tls", [False, True])
def test_every_figure_is_there_and_none_is_negative(*, tls: bool) -> None:
    figures = bench.run(20, 160, tls=tls)
    assert (figures["nodes"], figures["pods"]) == (20, 160)
    wanted = {"cpu_s", "cpu_us_per_pod", "rss_mib", "again_cpu_s", "times_faster_than_dicts"}
    assert wanted <= set(figures)
    assert min(figures.values()) >= 0
    assert figures["pod_json_bytes"] > 5000 > figures["pod_bytes"] > 3000
