"""Kubeflow's TrainJob: what its queue counts stands in ``spec.trainer``, its template in a runtime.

::

    spec.trainer: numNodes, command, args, env, resourcesPerNode ─► read as a pod's one container
                                              ▲
                                              └── of what that pod gets: the extended resources

Kueue renders the JobSet from runtime and TrainJob and counts that (kueue pkg/controller/jobs/
trainjob), so devices in ``resourcesPerNode`` are in the quota. Everything else is left to the pods:
environment of the trainer is the controller's, and the rest of the template belongs to a runtime
that many jobs share. A job that says no resources gets its accelerators from there, unseen.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from muster.injection.patching.operations import Operation, pointer
from muster.injection.patching.pointers import Json
from muster.injection.patching.record import InjectionRecord
from muster.injection.podview import PodView
from muster.injection.run import Injection, inject
from muster.injection.subject import Facts, Gang, Subject
from muster.injection.templates.manifests import PodTemplate

KIND: Final = "TrainJob"
_PATH: Final = ("spec", "trainer")
_NODE: Final = "node"  # the trainer's container (trainer pkg/constants)
_FROM: Final = pointer("spec", "containers", "0", "resources")
_TO: Final = pointer("resourcesPerNode")
_FIELD: Final = f"containers[{_NODE}].resources["


def trained(
    document: Json, namespace: str, facts: Facts
) -> tuple[PodTemplate, Injection, Subject] | None:
    """Return what a TrainJob's trainer gets, ``None`` for what is none or says no resources.

    Raises ``msgspec.ValidationError`` where the trainer cannot be read.
    """
    trainer = _trainer(document)
    if not trainer or not trainer.get("resourcesPerNode"):
        return None
    view = msgspec.convert({"spec": {"containers": [_container(trainer)]}}, PodView)
    nodes = trainer.get("numNodes")
    made = nodes if isinstance(nodes, int) else None
    gang = Gang(KIND.lower(), None, made)
    decided = inject(view, namespace, facts, gang)
    template = PodTemplate(document, _PATH, made or 1)
    return template, _resources_of(decided), Subject.of(view, namespace, facts, gang)


def _trainer(document: Json) -> Mapping[str, Json]:
    spec = document.get("spec") if isinstance(document, dict) else None
    trainer = spec.get("trainer") if isinstance(spec, dict) else None
    is_one = isinstance(document, dict) and document.get("kind") == KIND
    return trainer if is_one and isinstance(trainer, dict) else {}


def _container(trainer: Mapping[str, Json]) -> dict[str, Json]:
    own = {key: trainer[key] for key in ("command", "args", "env") if key in trainer}
    return {"name": _NODE, **own, "resources": trainer["resourcesPerNode"]}


def _resources_of(decided: Injection) -> Injection:
    """Return the part that belongs into ``resourcesPerNode``, and all that is said."""
    operations = tuple(
        msgspec.structs.replace(each, path=each.path.replace(_FROM, _TO, 1))
        for each in decided.operations
        if _is_resource(each)
    )
    told = {
        source: tuple(name for name in names if name.startswith(_FIELD))
        for source, names in decided.record.set.items()
    }
    record = InjectionRecord({source: names for source, names in told.items() if names})
    return Injection(operations, record, decided.warnings, decided.refusals)


def _is_resource(operation: Operation) -> bool:
    return operation.path.startswith((f"{_FROM}/limits", f"{_FROM}/requests"))
