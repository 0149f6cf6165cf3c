"""What Karmada's overriders do to a pod, each as upstream.

Source: pkg/util/overridemanager, the file named at each function. Overriders of images, commands
and args look at the kinds named here and do nothing for others, by kind and whatever its group;
they look at ``containers`` only.
"""

from typing import Final

import msgspec

from muster.injection.overrides import imagereference as images
from muster.injection.overrides.document import Document
from muster.injection.overrides.edit import Edit, texts
from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.imagereference import Image
from muster.injection.overrides.jsonpatch import patch
from muster.injection.overrides.karmada.schema import (
    CommandArgs,
    FieldOverrider,
    ImageOverrider,
    Plaintext,
    StringMap,
    SubPatch,
)
from muster.injection.patching.additions import CONTAINERS
from muster.injection.patching.pointers import Json, decoded, tokens

KINDS: Final = frozenset({"Pod", "ReplicaSet", "Deployment", "DaemonSet", "StatefulSet", "Job"})


def image(overrider: ImageOverrider, edit: Edit) -> None:
    """Change one component of images (imageoverride.go)."""
    if overrider.predicate is not None:
        check_image(overrider)
        path = edit.at(overrider.predicate.path)
        if path is not None:
            edit.document.replace(path, str(_changed(edit.text(path), overrider)))
        return
    if not _knows(edit, "imageOverrider"):
        return
    for path, container in edit.containers(CONTAINERS):
        old = container.get("image")
        new = _changed(old if isinstance(old, str) else "", overrider)
        edit.document.replace((*path, "image"), str(new), lenient=True)


def check_image(overrider: ImageOverrider) -> None:
    """Raise ``OverrideError`` for a path that is none."""
    path = "/" if overrider.predicate is None else overrider.predicate.path
    if not path.startswith("/"):
        raise OverrideError(f'predicate.path "{path}" must begin with "/"')


def _changed(text: str, overrider: ImageOverrider) -> Image:
    old = images.parse(text)
    if old.tag:
        old = Image(old.registry, old.repository, old.tag)  # a digest beside a tag is not read
    match overrider.component:
        case "Registry":
            return Image(_component(old.registry, overrider), old.repository, old.tag, old.digest)
        case "Repository":
            return Image(old.registry, _component(old.repository, overrider), old.tag, old.digest)
        case "Tag":
            return _tagged(old, overrider)


def _component(old: str, overrider: ImageOverrider) -> str:
    match overrider.operator:
        case "add":
            return old + overrider.value
        case "replace":
            return overrider.value
        case "remove":
            return ""


def _tagged(old: Image, overrider: ImageOverrider) -> Image:
    """Change tag or digest; text that is neither changes nothing (``SetTagOrDigest``)."""
    new = _component(old.tag or old.digest, overrider)
    if overrider.operator == "remove" or images.is_tag(new):
        return Image(old.registry, old.repository, new)
    if images.is_digest(new):
        return Image(old.registry, old.repository, digest=new)
    return old


def command_args(overrider: CommandArgs, kind: str, edit: Edit) -> None:
    """Append to command or args, or remove every item of a value (commandargsoverride.go)."""
    if not _knows(edit, f"{kind}Overrider"):
        return
    for path, container in edit.containers(CONTAINERS):
        if container.get("name") != overrider.container_name:
            continue
        old = texts(container.get(kind))
        if overrider.operator == "add":
            new = [*old, *overrider.value]
        else:
            new = [item for item in old if item not in overrider.value]
        edit.document.set_or_remove((*path, kind), new)


def string_map(overrider: StringMap, kind: str, edit: Edit) -> None:
    """Change the workload's own labels or annotations (labelannotationoverrider.go)."""
    if not edit.place.is_pod:
        edit.not_the_pods(kind)
        return
    for key, value in overrider.value.items():
        path = ("metadata", kind, key)
        there = edit.document.find(path) is not None
        if overrider.operator == "add":
            edit.document.add(path, value)
        elif there and overrider.operator == "replace":
            edit.document.replace(path, value)
        elif there:
            edit.document.remove(path)


def field(overrider: FieldOverrider, edit: Edit) -> None:
    """Change JSON or YAML inside the text of a field (``applyFieldOverriders``).

    Without an operation upstream empties the field; that is a mistake, and an error here.
    """
    path = edit.at(overrider.field_path)
    if path is None:
        return
    check_field(overrider)
    text = edit.text(path)
    new = _yaml(text, overrider) if overrider.yaml else _json(text, overrider)
    edit.document.replace(path, new)


def check_field(overrider: FieldOverrider) -> None:
    """Raise ``OverrideError`` for what can be done to no field."""
    tokens(overrider.field_path)
    if not (overrider.yaml or overrider.json):
        raise OverrideError(f"fieldOverrider of {overrider.field_path} has neither json nor yaml")
    for operation in overrider.yaml or overrider.json:
        tokens(operation.sub_path)


def _json(text: str, overrider: FieldOverrider) -> str:
    try:
        root: Json = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise OverrideError(f"{overrider.field_path} is no JSON: {error}") from error
    return msgspec.json.encode(_inside(root, overrider.json)).decode()


def _yaml(text: str, overrider: FieldOverrider) -> str:
    """Return YAML as upstream writes it: keys in their order in the alphabet."""
    try:
        root = decoded(msgspec.json.encode(msgspec.yaml.decode(text)))  # dates and keys as text
    except (msgspec.MsgspecError, RecursionError, TypeError) as error:
        raise OverrideError(f"{overrider.field_path} is no YAML: {error}") from error
    return msgspec.yaml.encode(_inside(root, overrider.yaml), order="sorted").decode()


def _inside(root: Json, operations: tuple[SubPatch, ...]) -> Json:
    document = Document(root, make_parents=False)
    for operation in operations:
        path = tokens(operation.sub_path)
        match operation.operator:
            case "add":
                document.add(path, decoded(operation.value))
            case "replace":
                document.replace(path, decoded(operation.value))
            case "remove":
                document.remove(path)
    return document.root


def plaintext(overrider: Plaintext, edit: Edit) -> None:
    """Do one operation of a JSON patch."""
    patch(edit, overrider.operator, overrider.path, decoded(overrider.value), lenient=False)


def _knows(edit: Edit, overrider: str) -> bool:
    """Return whether Karmada looks at this kind; that it does not is noted."""
    kind = edit.place.owner.kind
    if kind not in KINDS:
        edit.outside.append(f"Karmada's {overrider} does nothing for {kind}")
    return kind in KINDS
