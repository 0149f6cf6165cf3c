"""Spark: a driver on its own, and executors that come as they can."""

from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import names
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import spark

APP = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: etl, namespace: team-a}
spec:
  batchSchedulerOptions: {queue: nightly}
  driver: {cores: 1}
  executor: {instances: 8, annotations: {muster.dev/topology-preferred: rack}}
"""
SUBMITTED = {"spark-app-selector": "spark-0123", "spark-role": "executor", "spark-exec-id": "7"}
OPERATED = {**SUBMITTED, "sparkoperator.k8s.io/app-name": "etl"}


def test_executors_need_nobody_to_start() -> None:
    found = spark.spec(read(APP, spark.SparkApplication))
    assert found == GangSpec(
        key="spark/team-a/etl",
        namespace="team-a",
        name="etl",
        dialect="spark",
        min_count=1,
        preferred_level=names.RACK,
        queue="nightly",
        written=(
            (
                "preferred_level",
                "template executor: metadata.annotations[muster.dev/topology-preferred]",
            ),
        ),
    )


def test_dynamic_allocation_bounds_the_executors() -> None:
    growing = ("  driver:", "  dynamicAllocation: {enabled: true, maxExecutors: 40}\n  driver:")
    assert spark.spec(read(APP, spark.SparkApplication, growing)).max_count == 40
    off = ("enabled: true", "enabled: false")
    assert spark.spec(read(APP, spark.SparkApplication, growing, off)).max_count is None


def test_an_executor_of_the_operator_belongs_to_its_application() -> None:
    executor = pod(labels=OPERATED, owner=("v1", "Pod", "etl-driver"))
    assert registry.member(executor) == Member("spark/team-a/etl", "executor", 7)
    assert registry.spec_from_pod(executor) is None


def test_an_executor_submitted_by_hand_speaks_for_its_application() -> None:
    executor = pod(labels=SUBMITTED, annotations={"muster.dev/topology-required": "block"})
    found = registry.spec_from_pod(executor)
    assert found is not None
    assert (found.key, found.min_count, found.size) == ("spark/team-a/spark-0123", 1, None)
    assert (found.required_level, found.problems) == (names.BLOCK, ())


def test_a_driver_goes_alone() -> None:
    driver = pod("etl-driver", labels={**OPERATED, "spark-role": "driver"})
    assert registry.member(driver) is None
    assert registry.member_or_single(driver) == Member("pod/team-a/etl-driver")


def test_spark_without_accelerators_is_left_alone() -> None:
    assert not registry.names_a_group(pod(labels=OPERATED))


def test_a_gang_label_goes_before_spark() -> None:
    labels = {**SUBMITTED, "muster.dev/gang": "all", "muster.dev/gang-size": "9"}
    found = registry.member(pod(labels=labels))
    assert found is not None
    assert found.key == "muster/team-a/all"
