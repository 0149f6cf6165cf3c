"""The fields of KubeAdmiral's policies: pkg/apis/core/v1alpha1/types_overridepolicy.go."""

from typing import Literal

import msgspec

from muster.injection.overrides.schema import Strict
from muster.kube.wire import LabelSelectorRequirement


class Term(Strict, frozen=True):
    """ClusterSelectorTerm: both parts must hold."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    match_fields: tuple[LabelSelectorRequirement, ...] = ()


class TargetClusters(Strict, frozen=True):
    """The three are ANDed; each that is empty holds for every cluster."""

    clusters: tuple[str, ...] = ()
    cluster_selector: dict[str, str] = msgspec.field(default_factory=dict)
    cluster_affinity: tuple[Term, ...] = ()


class ImageOperation(Strict, frozen=True):
    """``operator`` omitted is ``overwrite``."""

    image_component: Literal["Registry", "Repository", "Tag", "Digest"]
    operator: Literal["", "addIfAbsent", "overwrite", "delete"] = ""
    value: str = ""


class ImageOverrider(Strict, frozen=True):
    """``image_path`` makes ``container_names`` count for nothing."""

    operations: tuple[ImageOperation, ...]
    container_names: tuple[str, ...] = ()
    image_path: str = ""


class Entrypoint(Strict, frozen=True):
    """EntrypointOverrider: of ``command`` and of ``args``."""

    container_name: str
    value: tuple[str, ...] | None
    operator: Literal["", "append", "overwrite", "delete"] = ""


class EnvVar(Strict, frozen=True):
    """core/v1 EnvVar as a policy gives it."""

    name: str
    value: str = ""
    value_from: msgspec.Raw = msgspec.Raw(b"null")


class EnvOverrider(Strict, frozen=True):
    """``operator`` omitted is ``overwrite``."""

    container_name: str
    value: tuple[EnvVar, ...] | None
    operator: Literal["", "addIfAbsent", "overwrite", "delete"] = ""


class StringMap(Strict, frozen=True):
    """StringMapOverrider; ``operator`` omitted is ``overwrite``."""

    value: dict[str, str] | None
    operator: Literal["", "addIfAbsent", "overwrite", "delete"] = ""


class JsonPatch(Strict, frozen=True):
    """JsonPatchOverrider; ``operator`` is free text, ``replace`` where it is omitted."""

    path: str
    operator: str = ""
    value: msgspec.Raw = msgspec.Raw(b"null")


class Overriders(Strict, frozen=True):
    """What one rule does."""

    image: tuple[ImageOverrider, ...] = ()
    command: tuple[Entrypoint, ...] = ()
    args: tuple[Entrypoint, ...] = ()
    envs: tuple[EnvOverrider, ...] = ()
    annotations: tuple[StringMap, ...] = ()
    labels: tuple[StringMap, ...] = ()
    jsonpatch: tuple[JsonPatch, ...] = ()


class OverrideRule(Strict, frozen=True):
    """Nothing is done without ``overriders``; no ``target_clusters`` means all."""

    target_clusters: TargetClusters | None = None
    overriders: Overriders | None = None


class Spec(Strict, frozen=True):
    """GenericOverridePolicySpec."""

    override_rules: tuple[OverrideRule, ...] = ()
