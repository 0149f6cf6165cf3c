"""Spark on Kubernetes: the executors of one application, near each other, never all or none.

Spark starts the driver first, and the driver asks for executors as it needs them; the job
runs with those it gets and grows with the others. So the driver goes alone, and the
executors are an elastic gang with a minimum of one. Pods carry (Spark,
resource-managers/kubernetes/core, deploy/k8s/Constants.scala; Spark operator v1beta2):

- ``spark-app-selector``: the application, and ``spark-role``: ``driver`` or ``executor``;
- ``spark-exec-id``: the order of the executors;
- ``sparkoperator.k8s.io/app-name``: the SparkApplication, where the operator submitted it.

**Who speaks.** An application of the operator is described by its SparkApplication: queue
from ``batchSchedulerOptions``, most executors from ``dynamicAllocation``, Muster's keys from
its metadata and from the executors' labels and annotations. One that was submitted by hand
is described by its executors themselves, whose template ``spark.kubernetes.executor.*`` sets.

Most Spark pods ask for no accelerator. The labels alone therefore do not make a pod
managed; those that ask for one, or carry a gang label, are.
"""

from typing import Final

import msgspec

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.dialect import MadePods, Member, Watched, created, gang_key
from muster.workloads.keys.labels import Context, overlay, read
from muster.workloads.keys.ranks import index
from muster.workloads.keys.templateparts import TemplatePart, lay_keys

APP: Final = "spark-app-selector"
ROLE: Final = "spark-role"
EXECUTOR_ID: Final = "spark-exec-id"
OPERATOR_APP: Final = "sparkoperator.k8s.io/app-name"
EXECUTOR: Final = "executor"
_INSTANCES: Final = 2  # SchedulerBackendUtils.DEFAULT_NUMBER_EXECUTORS


class Executor(wire.Wire, frozen=True):
    """What Muster reads of the executors' template."""

    instances: int | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)


class DynamicAllocation(wire.Wire, frozen=True):
    """How far Spark may grow by itself."""

    enabled: bool = False
    initial_executors: int | None = None
    min_executors: int | None = None
    max_executors: int | None = None


class BatchSchedulerOptions(wire.Wire, frozen=True):
    """What Muster reads of the operator's options for batch schedulers."""

    queue: str = ""


class SparkApplicationSpec(wire.Wire, frozen=True):
    """What Muster reads of a SparkApplication's spec."""

    executor: Executor = Executor()
    dynamic_allocation: DynamicAllocation = DynamicAllocation()
    batch_scheduler_options: BatchSchedulerOptions = BatchSchedulerOptions()


class SparkApplication(wire.Wire, frozen=True):
    """sparkoperator.k8s.io/v1beta2 SparkApplication."""

    metadata: wire.ObjectMeta = wire.ObjectMeta()
    spec: SparkApplicationSpec = SparkApplicationSpec()


def spec(app: SparkApplication) -> GangSpec:
    """Return the gang of an application's executors, as many as come."""
    meta, executor = app.metadata, app.spec.executor
    growing = app.spec.dynamic_allocation
    plain = GangSpec(
        key=gang_key(Spark.name, meta.namespace, meta.name),
        namespace=meta.namespace,
        name=meta.name,
        dialect=Spark.name,
        min_count=1,
        max_count=growing.max_executors if growing.enabled else None,
        queue=app.spec.batch_scheduler_options.queue,
        submitted_at=created(meta),
    )
    template = wire.ObjectMeta(labels=executor.labels, annotations=executor.annotations)
    return lay_keys(plain, meta, [TemplatePart(EXECUTOR, template, 1, 1)])


def pods(app: SparkApplication) -> tuple[MadePods, ...]:
    """Return the executors, as many as the application begins with; the driver is no member.

    Those are Spark's numbers (core, scheduler/cluster/SchedulerBackendUtils.scala).
    """
    growing, count = app.spec.dynamic_allocation, app.spec.executor.instances
    if growing.enabled:
        asked = (growing.initial_executors, growing.min_executors, count)
        count = max(each or 0 for each in asked)
    elif count is None:
        count = _INSTANCES
    return (MadePods(EXECUTOR, max(count, 0), ("spec", "executor", "template")),)


class Spark:
    """The dialect; stateless. Its labels do not make a pod managed."""

    name = "spark"
    markers: tuple[str, ...] = ()
    clues = (APP, OPERATOR_APP)  # recognised by them, yet not managed for them
    watched = (
        Watched(
            "sparkoperator.k8s.io", "v1beta2", "sparkapplications", SparkApplication, spec,
            pods=pods,
        ),
    )  # fmt: skip

    def member(self, pod: wire.Pod) -> Member | None:
        """Return an executor's application; a driver is nobody's member."""
        meta = pod.metadata
        app = meta.labels.get(OPERATOR_APP) or meta.labels.get(APP, "")
        if not app or meta.labels.get(ROLE) != EXECUTOR:
            return None
        return Member(gang_key(self.name, meta.namespace, app), EXECUTOR, index(meta, EXECUTOR_ID))

    def spec_from_pod(self, pod: wire.Pod) -> GangSpec | None:
        """Return what an executor says of its gang, ``None`` where a SparkApplication does."""
        meta, member = pod.metadata, self.member(pod)
        if member is None or OPERATOR_APP in meta.labels:
            return None
        plain = GangSpec(
            key=member.key,
            namespace=meta.namespace,
            name=meta.labels[APP],
            dialect=self.name,
            min_count=1,
            submitted_at=created(meta),
        )
        keys = read(meta.labels, meta.annotations)
        return overlay(plain, keys, Context(levels=(), group=self.name))
