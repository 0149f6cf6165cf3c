"""What KubeAdmiral's overriders do to a pod, each as upstream.

Source: pkg/controllers/override, the file named at each function. Image, command, args and envs
know Deployment, StatefulSet, DaemonSet, Job, CronJob and Pod there and fail for other kinds; here
the pod is at hand, so they work for every kind.
"""

from typing import Final

from muster.injection.overrides import imagereference as images
from muster.injection.overrides.edit import LISTS, Edit, texts
from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.imagereference import Image
from muster.injection.overrides.jsonpatch import check, patch
from muster.injection.overrides.kubeadmiral.schema import (
    Entrypoint,
    EnvOverrider,
    EnvVar,
    ImageOperation,
    ImageOverrider,
    JsonPatch,
    StringMap,
)
from muster.injection.patching.pointers import Json, Path, decoded

FORBIDDEN: Final = frozenset({
    "/metadata/namespace", "/metadata/name", "/metadata/generateName", "/kind",
})  # fmt: skip
"""pkg/controllers/sync/overrides.go, ``invalidOverridePaths``."""


def image(overrider: ImageOverrider, edit: Edit) -> None:
    """Change images, of init containers first (imagepatch.go)."""
    if overrider.image_path:
        _image_at(overrider, edit)
        return
    wanted = {name for name in overrider.container_names if name}
    for path, container in edit.containers(*LISTS):
        if not overrider.container_names or container.get("name") in wanted:
            old = container.get("image")
            new = _changed(old if isinstance(old, str) else "", overrider.operations)
            edit.document.replace((*path, "image"), str(new), lenient=True)


def _image_at(overrider: ImageOverrider, edit: Edit) -> None:
    check_image_path(overrider)
    path = edit.at(overrider.image_path)
    if path is not None:
        new = _changed(edit.text(path), overrider.operations)
        edit.document.replace(path, str(new), lenient=True)


def _changed(text: str, operations: tuple[ImageOperation, ...]) -> Image:
    parts = images.parse(text)
    for operation in operations:
        parts = _operate(parts, operation)
    return parts


def check_image_path(overrider: ImageOverrider) -> None:
    """Raise ``OverrideError`` for a path that is none."""
    if overrider.image_path and not overrider.image_path.startswith("/"):
        raise OverrideError(f'imagePath "{overrider.image_path}" must begin with "/"')


def check_operation(operation: ImageOperation) -> None:
    """Raise ``OverrideError`` for an operation that no image can have."""
    part, value = operation.image_component, operation.value
    if operation.operator == "addIfAbsent" and not value:
        raise OverrideError(f"image: addIfAbsent of {part} needs a value")
    if operation.operator == "delete" or not value:
        return
    if (part == "Tag" and not images.is_tag(value)) or (
        part == "Digest" and not images.is_digest(value)
    ):
        raise OverrideError(f'image: "{value}" is no {part.lower()}')


def _operate(parts: Image, operation: ImageOperation) -> Image:
    check_operation(operation)
    registry, repository, tag, digest = parts.registry, parts.repository, parts.tag, parts.digest
    match operation.image_component:
        case "Registry":
            registry = _component(registry, operation)
        case "Repository":
            repository = _component(repository, operation)
        case "Tag":
            tag = _component(tag, operation)
        case "Digest":
            digest = _component(digest, operation)
    return Image(registry, repository, tag, digest)


def _component(old: str, operation: ImageOperation) -> str:
    if operation.operator == "delete":
        return ""
    if operation.operator == "addIfAbsent" and old:
        part = operation.image_component
        raise OverrideError(f"image: addIfAbsent of {part}, which there is already")
    return operation.value


def entrypoint(overrider: Entrypoint, kind: str, edit: Edit) -> None:
    """Change the command or the args of one container (commandargspatch.go)."""
    found = _container(edit, overrider.container_name)
    if found is None:
        return
    check_entrypoint(overrider, kind)
    path, container = found
    old, value = texts(container.get(kind)), overrider.value or ()
    new: list[Json]
    match overrider.operator:
        case "append":
            new = [*old, *value]
        case "delete":
            new = [item for item in old if item not in value]
        case _:
            new = list(value)
    edit.document.set_or_remove((*path, kind), new)


def check_entrypoint(overrider: Entrypoint, kind: str) -> None:
    """Raise ``OverrideError`` for what can be done to no container."""
    if not overrider.operator:
        raise OverrideError(
            f"{kind} of {overrider.container_name}: operator is missing; KubeAdmiral knows no "
            "default for it: append, overwrite or delete"
        )
    if overrider.operator == "append" and not overrider.value:
        raise OverrideError(f"{kind}: append needs at least one value")


def check_values(overrider: EnvOverrider | StringMap, kind: str) -> None:
    """Raise ``OverrideError`` where nothing is to be added."""
    if overrider.operator == "addIfAbsent" and not overrider.value:
        raise OverrideError(f"{kind}: addIfAbsent needs at least one value")


def env(overrider: EnvOverrider, edit: Edit) -> None:
    """Change the environment of one container (envspatch.go)."""
    found = _container(edit, overrider.container_name)
    if found is None:
        return
    check_values(overrider, "envs")
    path, container = found
    wanted, operator = overrider.value or (), overrider.operator or "overwrite"
    new = texts(container.get("env"))
    for variable in wanted:
        there = any(_named(item, variable.name) for item in new)
        if operator == "addIfAbsent":
            if there:
                raise OverrideError(f"envs: addIfAbsent of {variable.name}, which there is already")
            new.append(_json(variable))
        elif operator == "delete":
            new = [item for item in new if not _named(item, variable.name)]
        else:
            new = [_json(variable) if _named(item, variable.name) else item for item in new]
    edit.document.set_or_remove((*path, "env"), new)


def string_map(overrider: StringMap, kind: str, edit: Edit) -> None:
    """Change the workload's own labels or annotations (annotationslabelspatch.go)."""
    operator, wanted = overrider.operator or "overwrite", overrider.value or {}
    check_values(overrider, kind)
    if not edit.place.is_pod:
        edit.not_the_pods(kind)
        return
    for key, value in wanted.items():
        path = ("metadata", kind, key)
        there = edit.document.find(path) is not None
        if operator == "addIfAbsent":
            if there:
                raise OverrideError(f"{kind}: addIfAbsent of {key}, which there is already")
            edit.document.add(path, value)
        elif there and operator == "overwrite":
            edit.document.replace(path, value)
        elif there:
            edit.document.remove(path)


def json_patch(overrider: JsonPatch, edit: Edit) -> None:
    """Do one operation (util.go and sync/overrides.go)."""
    check_json_patch(overrider)
    operator = overrider.operator or "replace"
    patch(edit, operator, overrider.path, decoded(overrider.value), lenient=True)


def check_json_patch(overrider: JsonPatch) -> None:
    """Raise ``OverrideError`` for an operation that is forbidden, or none."""
    if overrider.path in FORBIDDEN:
        raise OverrideError(f"jsonpatch: {overrider.path} may not be overridden")
    check(overrider.operator or "replace", overrider.path)


def _container(edit: Edit, name: str) -> tuple[Path, dict[str, Json]] | None:
    """Return the first container of a name, init containers first; ``None`` is no error."""
    found = (item for item in edit.containers(*LISTS) if item[1].get("name") == name)
    return next(found, None)


def _named(item: Json, name: str) -> bool:
    return isinstance(item, dict) and item.get("name") == name


def _json(variable: EnvVar) -> Json:
    """Return a variable as the API server has it: without what is empty."""
    found: dict[str, Json] = {"name": variable.name}
    if variable.value:
        found["value"] = variable.value
    source = decoded(variable.value_from)
    if source is not None:
        found["valueFrom"] = source
    return found
