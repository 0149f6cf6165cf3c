"""Pods as the API server sends them, with just what a test is about."""

from muster.kube import wire


def pod(
    name: str = "p",
    *,
    namespace: str = "team-a",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owner: tuple[str, str, str] | None = None,
    limits: dict[str, wire.Quantity] | None = None,
    scheduler: str = "default-scheduler",
    gates: tuple[str, ...] = (),
    node: str = "",
) -> wire.Pod:
    """Return a pod; `owner` is (apiVersion, kind, name) of its controller."""
    owners = () if owner is None else (controller(*owner),)
    container = wire.Container(name="main", resources=wire.Resources(limits=limits or {}))
    return wire.Pod(
        metadata=wire.ObjectMeta(
            name=name,
            namespace=namespace,
            labels=labels or {},
            annotations=annotations or {},
            owner_references=owners,
        ),
        spec=wire.PodSpec(
            containers=(container,),
            scheduler_name=scheduler,
            scheduling_gates=tuple(wire.SchedulingGate(name=gate) for gate in gates),
            node_name=node,
        ),
    )


def controller(api_version: str, kind: str, name: str) -> wire.OwnerReference:
    """Return the reference to a controlling owner."""
    return wire.OwnerReference(api_version=api_version, kind=kind, name=name, controller=True)
