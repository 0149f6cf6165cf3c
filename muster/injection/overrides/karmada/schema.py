"""The fields of Karmada's policies: pkg/apis/policy/v1alpha1/override_types.go."""

from typing import Literal

import msgspec

from muster.injection.overrides.schema import Strict
from muster.kube.wire import LabelSelector, LabelSelectorRequirement

Operator = Literal["add", "remove", "replace"]


class FieldSelector(Strict, frozen=True):
    """On ``provider``, ``region`` and ``zone`` of a cluster; all must hold."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ClusterAffinity(Strict, frozen=True):
    """Everything that is said must hold."""

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Selector(Strict, frozen=True):
    """ResourceSelector: of workloads."""

    api_version: str
    kind: str
    namespace: str = ""
    name: str = ""
    label_selector: LabelSelector | None = None


class Predicate(Strict, frozen=True):
    """ImagePredicate: the one image that is meant."""

    path: str


class ImageOverrider(Strict, frozen=True):
    """One component of images; ``Tag`` is the tag or the digest, whichever there is."""

    component: Literal["Registry", "Repository", "Tag"]
    operator: Operator
    value: str = ""
    predicate: Predicate | None = None


class CommandArgs(Strict, frozen=True):
    """CommandArgsOverrider: of one container's command or args."""

    container_name: str
    operator: Literal["add", "remove"]
    value: tuple[str, ...] = ()


class StringMap(Strict, frozen=True):
    """LabelAnnotationOverrider."""

    operator: Operator
    value: dict[str, str] = msgspec.field(default_factory=dict)


class SubPatch(Strict, frozen=True):
    """JSONPatchOperation and YAMLPatchOperation: inside the text of a field."""

    sub_path: str
    operator: Operator
    value: msgspec.Raw = msgspec.Raw(b"null")


class FieldOverrider(Strict, frozen=True):
    """A field whose text is itself JSON or YAML; ``yaml`` counts where both are given."""

    field_path: str
    json: tuple[SubPatch, ...] = ()
    yaml: tuple[SubPatch, ...] = ()


class Plaintext(Strict, frozen=True):
    """PlaintextOverrider: one operation of a JSON patch."""

    path: str
    operator: Operator
    value: msgspec.Raw = msgspec.Raw(b"null")


class Overriders(Strict, frozen=True):
    """What one rule does."""

    plaintext: tuple[Plaintext, ...] = ()
    image_overrider: tuple[ImageOverrider, ...] = ()
    command_overrider: tuple[CommandArgs, ...] = ()
    args_overrider: tuple[CommandArgs, ...] = ()
    labels_overrider: tuple[StringMap, ...] = ()
    annotations_overrider: tuple[StringMap, ...] = ()
    field_overrider: tuple[FieldOverrider, ...] = ()


NOTHING = Overriders()


class RuleWithCluster(Strict, frozen=True):
    """No ``target_cluster`` means all."""

    overriders: Overriders
    target_cluster: ClusterAffinity | None = None


class Spec(Strict, frozen=True):
    """OverrideSpec; ``target_cluster`` and ``overriders`` are the form before v1.0."""

    resource_selectors: tuple[Selector, ...] = ()
    override_rules: tuple[RuleWithCluster, ...] = ()
    target_cluster: ClusterAffinity | None = None
    overriders: Overriders = NOTHING
