"""What `muster inject` does before it prints: read the profile, change each document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import yaml

from cli.output import Failure
from injection import catalog, placesdata
from injection.apply import applied
from injection.clusterprofile import ClusterProfile, ClusterProfileSpec, FabricChoice, Pods
from injection.errors import ProfileError
from injection.fabric import Fabrics, Name
from injection.manifests import Json, Template, templates, without_nulls
from injection.patch import Operation, pointer
from injection.podview import PodView
from injection.run import Injection, inject
from injection.subject import Facts, Gang, gang_of
from kube import wire
from workloads.accelerators import load


@dataclass(frozen=True, slots=True)
class Changed:
    """One pod template and what happens to it."""

    template: Template
    injection: Injection


@dataclass(frozen=True, slots=True)
class Outcome:
    """One document before and after."""

    name: str
    before: Json
    after: Json
    templates: tuple[Changed, ...]


def facts(profile: str, own: Sequence[Path]) -> Facts:
    """Return the cluster that `--profile` tells: a file, or a fabric that every pod gets.

    Raises `Failure` for what is neither, or cannot be used.
    """
    try:
        fabrics = _fabrics(own)
        cluster = _cluster(profile, fabrics)
    except ProfileError as error:
        raise Failure(str(error)) from error
    problems = catalog.unknown_fabrics(cluster, fabrics)
    if problems:
        raise Failure("\n".join(problems))
    return Facts(cluster, fabrics, load(), placesdata.load())


def outcomes(text: str, known: Facts, namespace: str) -> list[Outcome]:
    """Return what becomes of each document of a file. Raises `Failure` for what is no YAML."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except yaml.YAMLError as error:
        raise Failure(f"the manifests are not YAML: {error}") from error
    return [outcome(without_nulls(document), known, namespace) for document in documents]


def outcome(document: Json, known: Facts, namespace: str) -> Outcome:
    """Return what becomes of one document."""
    found = templates(document)
    changed = tuple(Changed(t, _inject(t, known, _namespace(document, namespace))) for t in found)
    after = document
    for each in changed:
        after = applied(after, _operations(each))
    return Outcome(_name(document), document, after, changed)


def _operations(changed: Changed) -> Iterator[Operation]:
    """Yield the operations on a template as ones on the whole document.

    Every pod has metadata, a template need not.
    """
    prefix, operations = pointer(*changed.template.path), changed.injection.operations
    if operations and "metadata" not in changed.template.pod:
        yield Operation(f"{prefix}/metadata", {})
    for operation in operations:
        yield msgspec.structs.replace(operation, path=prefix + operation.path)


def _inject(template: Template, known: Facts, namespace: str) -> Injection:
    try:
        view = msgspec.convert(template.pod, PodView)
        pod = msgspec.convert(template.pod, wire.Pod)
    except msgspec.ValidationError as error:
        raise Failure(f"{template.where or 'the pod'}: {error}") from error
    meta = msgspec.structs.replace(pod.metadata, namespace=namespace)
    pod = msgspec.structs.replace(pod, metadata=meta)
    gang = gang_of(pod)
    if gang is None and template.pods > 1:
        gang = Gang("manifest", template.pods)
    return inject(view, namespace, known, gang)


def _fabrics(own: Sequence[Path]) -> Fabrics:
    read = (catalog.parse(_bytes(path), source=str(path)) for path in own)
    return {**catalog.load(), **{fabric.name: fabric for fabric in read}}


def _cluster(profile: str, fabrics: Fabrics) -> ClusterProfile:
    if profile in fabrics:
        choice = FabricChoice(profile=profile, pods=Pods.ACCELERATED)
        return ClusterProfile(
            metadata=Name(name=profile), spec=ClusterProfileSpec(fabrics=(choice,))
        )
    if not Path(profile).exists():
        allowed = ", ".join(sorted(fabrics))
        raise Failure(f"--profile {profile}: is no file and no fabric; fabrics are {allowed}")
    return catalog.parse_cluster(_bytes(Path(profile)), profile)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from error


def _namespace(document: Json, otherwise: str) -> str:
    found = document.get("metadata") if isinstance(document, dict) else None
    named = found.get("namespace") if isinstance(found, dict) else None
    return named if isinstance(named, str) else otherwise


def _name(document: Json) -> str:
    if not isinstance(document, dict):
        return "document"
    meta = document.get("metadata")
    name = meta.get("name") or meta.get("generateName") if isinstance(meta, dict) else None
    return f"{document.get('kind', 'object')} {name or '(no name)'}"
