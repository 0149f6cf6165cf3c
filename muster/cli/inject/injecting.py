"""The work of `muster inject` before it prints: read the profile, change each document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from muster.cli.output import Failure
from muster.injection.errors import ProfileError, TemplateError
from muster.injection.patching.apply import applied
from muster.injection.patching.pointers import Json
from muster.injection.profiles import catalog, tiers
from muster.injection.profiles.clusterprofile import (
    ClusterProfile,
    ClusterProfileSpec,
    FabricChoice,
    Pods,
)
from muster.injection.profiles.fabric import Fabrics, Name
from muster.injection.subject import Facts
from muster.injection.templates.completion import (
    Completed,
    completed,
    is_decided,
    is_queued,
    is_wanted,
    messages,
)
from muster.injection.templates.manifests import without_nulls
from muster.workloads.devices.accelerators import load


class _Loader(yaml.SafeLoader):
    """Reads YAML with the types of JSON: a date stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


#: kinds whose pods come from a runtime, or from fields of the controller's own
_UNSEEN: Final = frozenset({"TrainJob", "SparkApplication", "ScheduledSparkApplication"})


@dataclass(frozen=True, slots=True)
class InjectedDocument:
    """One document before and after."""

    #: File and number of the document, as in messages.
    where: str
    #: Kind and name of its object.
    name: str
    before: Json
    after: Json
    #: What happened to each pod template of the object.
    templates: tuple[Completed, ...]
    #: When the changes are made, "" for a pod or for no changes.
    when: str

    @property
    def refused(self) -> bool:
        """Whether admission would refuse the document or its pods."""
        return any(each.injection.refusals for each in self.templates)

    @property
    def makes_unseen_pods(self) -> bool:
        """Whether its controller makes pods of which the document holds no template."""
        return not self.templates and self.name.partition(" ")[0] in _UNSEEN

    def messages(self) -> Iterator[tuple[str, str]]:
        """Yield refusals and warnings: ("refused" or "warning", text)."""
        for kind, texts in messages(self.templates).items():
            yield from ((kind, text) for text in texts)


def facts(profile: str, own: Sequence[Path]) -> Facts:
    """Return the cluster of `--profile`: a file, or a fabric that every pod gets.

    Raises `Failure` for a profile that is neither, or that cannot be used.
    """
    try:
        fabrics = _fabrics(own)
        cluster = _cluster(profile, fabrics)
    except ProfileError as error:
        raise Failure(str(error)) from error
    problems = catalog.unknown_fabrics(cluster, fabrics)
    if problems:
        raise Failure("\n".join(problems))
    return Facts(cluster, fabrics, load(), tiers.load())


def outcomes(file: str, text: str, known: Facts, namespace: str) -> list[InjectedDocument]:
    """Return each document of a file after admission.

    Raises `Failure` with file, document and field for invalid YAML or an invalid pod.
    """
    documents = _documents(file, text)
    return [
        _outcome(
            f"{file}, document {number}" if len(documents) > 1 else file, each, known, namespace
        )
        for number, each in enumerate(documents, 1)
    ]


def _documents(file: str, text: str) -> list[Json]:
    try:
        found = list(yaml.load_all(text, _Loader))
    except yaml.MarkedYAMLError as error:
        at = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Failure(f"{file}{at}: is not YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise Failure(f"{file}: is not YAML: {error}") from error
    return [without_nulls(document) for document in found if document is not None]


def _outcome(where: str, document: Json, known: Facts, namespace: str) -> InjectedDocument:
    name = _name(document)
    if not isinstance(document, dict) or "kind" not in document:
        raise Failure(f"{where}: is no Kubernetes object: kind is missing")
    own = _namespace(document, namespace)
    try:
        found = completed(document, own, known)
        when = _when(document, own, known, found)
    except TemplateError as error:
        raise Failure(f"{where} ({name}): {error}") from error
    after: Json = document
    for each in found:
        after = applied(after, each.operations())
    return InjectedDocument(where, name, document, after, tuple(found), when)


def _when(
    document: dict[str, Json], namespace: str, known: Facts, found: Sequence[Completed]
) -> str:
    """Return when the changes are made; "" for a pod, or for no changes."""
    kind = document["kind"]
    changed = [each for each in found if each.template.path and each.injection.operations]
    if not changed:
        return ""
    queued = is_queued(document)
    if is_wanted(document, namespace, known) and (not queued or all(map(is_decided, changed))):
        why = ", whose template its queue counts" if queued else ""
        return f"when the {kind} is made{why}"
    return f"when its pods are made; the {kind} stays as it is written"


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


def _namespace(document: dict[str, Json], otherwise: str) -> str:
    found = document.get("metadata")
    named = found.get("namespace") if isinstance(found, dict) else None
    return named if isinstance(named, str) else otherwise


def _name(document: Json) -> str:
    if not isinstance(document, dict):
        return "document"
    meta = document.get("metadata")
    name = meta.get("name") or meta.get("generateName") if isinstance(meta, dict) else None
    return f"{document.get('kind', 'object')} {name or '(no name)'}"
