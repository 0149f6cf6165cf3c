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
from muster.injection.podview import Container, EnvVar, PodView, Resources, Spec
from muster.injection.run import Injection, inject
from muster.injection.subject import Facts, Gang, Subject
from muster.injection.templates.decodingerrors import template_error
from muster.injection.templates.manifests import PodTemplate
from muster.kube.wire import Wire

KIND: Final = "TrainJob"
_PATH: Final = ("spec", "trainer")
_NODE: Final = "node"  # the trainer's container (trainer pkg/constants)
_FROM: Final = pointer("spec", "containers", "0", "resources")
_TO: Final = pointer("resourcesPerNode")
_FIELD: Final = f"containers[{_NODE}].resources["

#: how messages about the container begin, and about the trainer
_FIELDS: Final = (
    (f"containers[{_NODE}].resources", ".resourcesPerNode"),
    ("spec.containers[*].resources", ".resourcesPerNode"),
    (f"containers[{_NODE}]", ""),
)


class _Trainer(Wire, frozen=True):
    """trainer.kubeflow.org/v1alpha1 Trainer, the fields of the container that it becomes."""

    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    resources_per_node: Resources = Resources()


def trained(
    document: Json, namespace: str, facts: Facts
) -> tuple[PodTemplate, Injection, Subject] | None:
    """Return what a TrainJob's trainer gets, ``None`` for what is none or says no resources.

    Raises ``TemplateError`` with the field of the trainer that cannot be read.
    """
    trainer = _trainer(document)
    if not trainer or not trainer.get("resourcesPerNode"):
        return None
    view = PodView(spec=Spec(containers=(_container(trainer, document),)))
    nodes = trainer.get("numNodes")
    gang = Gang(KIND.lower(), counts=(nodes,) if isinstance(nodes, int) and nodes > 0 else ())
    decided = inject(view, namespace, facts, gang)
    template = PodTemplate(document, _PATH, gang.counts)
    return template, _resources_of(decided), Subject.of(view, namespace, facts, gang)


def _trainer(document: Json) -> Mapping[str, Json]:
    spec = document.get("spec") if isinstance(document, dict) else None
    trainer = spec.get("trainer") if isinstance(spec, dict) else None
    is_one = isinstance(document, dict) and document.get("kind") == KIND
    return trainer if is_one and isinstance(trainer, dict) else {}


def _container(trainer: Mapping[str, Json], document: Json) -> Container:
    """Return the trainer as the container that it becomes."""
    try:
        own = msgspec.convert(trainer, _Trainer)
    except msgspec.ValidationError as error:
        raise template_error(error, document, _PATH) from error
    return Container(
        name=_NODE,
        command=own.command,
        args=own.args,
        env=own.env,
        resources=own.resources_per_node,
    )


def _resources_of(decided: Injection) -> Injection:
    """Return the part that belongs into ``resourcesPerNode``, and all that is said."""
    operations = tuple(
        msgspec.structs.replace(each, path=each.path.replace(_FROM, _TO, 1))
        for each in decided.operations
        if _is_resource(each)
    )
    fields = {
        source: tuple(name for name in names if name.startswith(_FIELD))
        for source, names in decided.record.set.items()
    }
    record = InjectionRecord({source: names for source, names in fields.items() if names})
    warnings, refusals = map(_of_trainer, decided.warnings), map(_of_trainer, decided.refusals)
    return Injection(operations, record, tuple(warnings), tuple(refusals), decided.found)


def _of_trainer(text: str) -> str:
    """Return a message about the container as one about ``spec.trainer``."""
    for container, trainer in _FIELDS:
        if text.startswith(container):
            return trainer + text.removeprefix(container)
    return text


def _is_resource(operation: Operation) -> bool:
    return operation.path.startswith((f"{_FROM}/limits", f"{_FROM}/requests"))
