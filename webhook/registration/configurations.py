"""The Mutating- and the ValidatingWebhookConfiguration, built from the same policy.

Tests, the demo and the shipped manifests all take them from here, so what is tested is
what is installed.

**failurePolicy.** What happens to a matching request while no replica answers:

- mutating pods: *Ignore*. A pod that comes through ungated is still placed right, only
  slower: the extender's filter holds it until its gang is planned. Refusing pods would
  stop every accelerator job of the cluster for the length of an outage.
- validating pods: *Fail*. It is only called for updates that change something of Muster's
  and for new pods that carry a plan (see ``webhook.registration.matchconditions``), and it guards
  what the rest relies on: only Muster writes plans. Controllers try again. New pods are
  otherwise checked where they are mutated: that is one call less for each, and an outage does not
  stop them; the extender refuses a gang whose keys contradict each other.
- validating namespaces (only where ``trusted.optOutGroups`` names a group): *Fail*. It is only
  called where the opt-out label changes (``webhook.review.namespaceoptout``).
- validating templates: *Ignore*. Only convenience: the pods are checked again.
- mutating jobs: *Ignore*. What their templates do not get their pods do.

Nothing can lock itself out: kube-system, the namespace of Muster itself and opted-out
namespaces are excluded, nodes and leases are not matched at all, and admission webhooks
are never called for webhook configurations, which can therefore always be deleted.

``timeoutSeconds`` is short because it adds to every creation while a replica hangs.
``sideEffects: NoneOnDryRun`` where pods and jobs are mutated: places are reserved for pods, and
Events written about jobs, unless it is a dry run.
``reinvocationPolicy: IfNeeded`` because other webhooks (Kueue, Kyverno) may add the very
label or scheduler name that makes a pod Muster's, after Muster was asked.
"""

import base64
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from muster.kube import names
from muster.workloads.managedpods import ManagedPolicy
from webhook.registration.matchconditions import (
    Condition,
    jobs_to_mutate,
    pods_to_mutate,
    pods_to_validate,
    templates_to_validate,
)
from webhook.review import groupobjects, jobs, jobtemplates, namespaceoptout
from webhook.review.validation import ValidationRules

MUTATE_PATH: Final = "/mutate"
VALIDATE_PATH: Final = "/validate"
DEFAULT_NAME: Final = "muster-webhook"
MUTATE_TIMEOUT_S: Final = 3
VALIDATE_TIMEOUT_S: Final = 5
NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"  # set by the API server, cannot be forged

FailurePolicy = Literal["Ignore", "Fail"]


class _Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Base of the wire structs of admissionregistration.k8s.io/v1."""


class Service(_Struct, frozen=True):
    """The Service in front of the replicas."""

    name: str = DEFAULT_NAME
    namespace: str = "muster-system"
    path: str = ""
    port: int = 443


class ClientConfig(_Struct, frozen=True):
    """How the API server reaches the webhook, and whom it trusts there."""

    url: str = ""
    service: Service | None = None
    ca_bundle: str = ""


class Rule(_Struct, frozen=True):
    """Which requests."""

    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    resources: tuple[str, ...]
    operations: tuple[str, ...]


class Expression(_Struct, frozen=True):
    """meta/v1 LabelSelectorRequirement."""

    key: str
    operator: str
    values: tuple[str, ...]


class Selector(_Struct, frozen=True):
    """meta/v1 LabelSelector."""

    match_expressions: tuple[Expression, ...]


class Hook(_Struct, frozen=True):
    """MutatingWebhook and ValidatingWebhook; ``reinvocation_policy`` only on the former."""

    name: str
    client_config: ClientConfig
    rules: tuple[Rule, ...]
    namespace_selector: Selector
    match_conditions: tuple[Condition, ...]
    failure_policy: FailurePolicy
    timeout_seconds: int
    side_effects: str
    admission_review_versions: tuple[str, ...]
    match_policy: str
    reinvocation_policy: str = ""


class Meta(_Struct, frozen=True):
    """meta/v1 ObjectMeta, as far as it is written."""

    name: str
    labels: dict[str, str]
    resource_version: str = ""


class Configuration(_Struct, frozen=True):
    """MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""

    api_version: str
    kind: str
    metadata: Meta
    webhooks: tuple[Hook, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Where the webhook is: a base ``url`` (https, no path), else the Service."""

    url: str = ""
    service: str = DEFAULT_NAME
    namespace: str = "muster-system"

    def at(self, path: str, ca_bundle: bytes) -> ClientConfig:
        """Return the client configuration of one path. An empty bundle leaves it out."""
        bundle = base64.b64encode(ca_bundle).decode()
        if self.url:
            return ClientConfig(url=self.url.rstrip("/") + path, ca_bundle=bundle)
        service = Service(name=self.service, namespace=self.namespace, path=path)
        return ClientConfig(service=service, ca_bundle=bundle)


@dataclass(frozen=True, slots=True)
class FailurePolicies:
    """See the module's docstring."""

    mutate_pods: FailurePolicy = "Ignore"
    validate_pods: FailurePolicy = "Fail"
    validate_templates: FailurePolicy = "Ignore"
    mutate_jobs: FailurePolicy = "Ignore"


def configurations(
    ca_bundle: bytes,
    target: Target,
    *,
    policy: ManagedPolicy | None = None,
    rules: ValidationRules | None = None,
    failure: FailurePolicies | None = None,
    name: str = DEFAULT_NAME,
    every_pod: bool = False,
) -> tuple[Configuration, Configuration]:
    """Return the mutating and the validating configuration; see ``to_json``.

    ``ca_bundle``: PEM. ``policy`` and ``rules``: as the server is configured. ``every_pod``: see
    ``pods_to_mutate``.
    """
    policy, rules = policy or ManagedPolicy(), rules or ValidationRules()
    failure = failure or FailurePolicies()
    mutate = target.at(MUTATE_PATH, ca_bundle)
    filters = pods_to_mutate(policy, every_pod=every_pod)
    changes = (_mutating(mutate, policy, failure, filters), _mutating_jobs(mutate, policy, failure))
    validate = target.at(VALIDATE_PATH, ca_bundle)
    checks: tuple[Hook, ...] = (
        _validating_pods(validate, policy, rules, failure),
        _validating_templates(validate, policy, failure),
    )
    if rules.opt_out_groups:
        checks += (_validating_namespaces(validate, policy),)
    return (
        _configuration("MutatingWebhookConfiguration", name, changes),
        _configuration("ValidatingWebhookConfiguration", name, checks),
    )


def to_json(configuration: Configuration) -> bytes:
    """Return a configuration as the JSON object to send."""
    return msgspec.json.encode(configuration)


def to_yaml(configuration: Configuration) -> bytes:
    """Return a configuration as a YAML document."""
    return msgspec.yaml.encode(configuration)


def _mutating(
    client: ClientConfig,
    policy: ManagedPolicy,
    failure: FailurePolicies,
    filters: tuple[Condition, ...],
) -> Hook:
    return _hook(
        name="pods.mutate.muster.dev",
        client_config=client,
        rules=(_rule("", "v1", ("pods",), ("CREATE",)),),
        namespace_selector=_namespaces(policy, opt_out=True),
        match_conditions=filters,
        failure_policy=failure.mutate_pods,
        timeout_seconds=MUTATE_TIMEOUT_S,
        reinvocation_policy="IfNeeded",
        side_effects="NoneOnDryRun",
    )


def _mutating_jobs(client: ClientConfig, policy: ManagedPolicy, failure: FailurePolicies) -> Hook:
    """Return the hook of jobs; it is called again where another one has named a queue since."""
    return _hook(
        name="jobs.mutate.muster.dev",
        client_config=client,
        rules=tuple(_rule(*at, found, ("CREATE",)) for at, found in jobs.RESOURCES.items()),
        namespace_selector=_namespaces(policy, opt_out=True),
        match_conditions=jobs_to_mutate(policy),
        failure_policy=failure.mutate_jobs,
        timeout_seconds=MUTATE_TIMEOUT_S,
        reinvocation_policy="IfNeeded",
        side_effects="NoneOnDryRun",
    )


def _validating_pods(
    client: ClientConfig, policy: ManagedPolicy, rules: ValidationRules, failure: FailurePolicies
) -> Hook:
    """Guard plans in opted-out namespaces too: a plan makes a pod Muster's wherever it is."""
    return _hook(
        name="pods.validate.muster.dev",
        client_config=client,
        rules=(_rule("", "v1", ("pods",), ("CREATE", "UPDATE")),),
        namespace_selector=_namespaces(policy, opt_out=False),
        match_conditions=pods_to_validate(policy, rules),
        failure_policy=failure.validate_pods,
        timeout_seconds=VALIDATE_TIMEOUT_S,
    )


def _validating_namespaces(client: ClientConfig, policy: ManagedPolicy) -> Hook:
    return _hook(
        name="namespaces.validate.muster.dev",
        client_config=client,
        rules=(_rule("", "v1", ("namespaces",), ("CREATE", "UPDATE")),),
        namespace_selector=_namespaces(policy, opt_out=False),
        match_conditions=(Condition("changes-the-opt-out", namespaceoptout.condition()),),
        failure_policy="Fail",
        timeout_seconds=VALIDATE_TIMEOUT_S,
    )


def _validating_templates(
    client: ClientConfig, policy: ManagedPolicy, failure: FailurePolicies
) -> Hook:
    """ReplicaSets are left out: a Deployment makes them, and no user would see the refusal."""
    both = ("CREATE", "UPDATE")
    return _hook(
        name="templates.validate.muster.dev",
        client_config=client,
        rules=(
            _rule("apps", "v1", ("deployments", "statefulsets", "daemonsets"), both),
            _rule("batch", "v1", ("jobs", "cronjobs"), both),
            _rule("jobset.x-k8s.io", "v1alpha2", ("jobsets",), both),
            *(_rule(*at, found, both) for at, found in _job_resources().items()),
        ),
        namespace_selector=_namespaces(policy, opt_out=True),
        match_conditions=templates_to_validate(),
        failure_policy=failure.validate_templates,
        timeout_seconds=VALIDATE_TIMEOUT_S,
    )


def _job_resources() -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the resources of training jobs and the like, by group and version."""
    by_version: dict[tuple[str, str], tuple[str, ...]] = {}
    for group, version, resource in sorted((*jobtemplates.RESOURCES, *groupobjects.RESOURCES)):
        at = group, version
        by_version[at] = (*by_version.get(at, ()), resource)
    return by_version


def _hook(
    *,
    name: str,
    client_config: ClientConfig,
    rules: tuple[Rule, ...],
    namespace_selector: Selector,
    match_conditions: tuple[Condition, ...],
    failure_policy: FailurePolicy,
    timeout_seconds: int,
    reinvocation_policy: str = "",
    side_effects: str = "None",
) -> Hook:
    """Return a hook with what is the same for all: v1 reviews, every API version."""
    return Hook(
        name=name,
        client_config=client_config,
        rules=rules,
        namespace_selector=namespace_selector,
        match_conditions=match_conditions,
        failure_policy=failure_policy,
        timeout_seconds=timeout_seconds,
        reinvocation_policy=reinvocation_policy,
        side_effects=side_effects,
        admission_review_versions=("v1",),
        match_policy="Equivalent",
    )


def _rule(
    group: str, version: str, resources: tuple[str, ...], operations: tuple[str, ...]
) -> Rule:
    return Rule(
        api_groups=(group,), api_versions=(version,), resources=resources, operations=operations
    )


def _namespaces(policy: ManagedPolicy, *, opt_out: bool) -> Selector:
    """Return the selector of the namespaces that Muster looks at."""
    out = tuple(sorted(policy.excluded_namespaces))
    excluded = (Expression(key=NAMESPACE_NAME, operator="NotIn", values=out),) if out else ()
    opted_out = (Expression(key=names.MANAGED, operator="NotIn", values=("false",)),)
    return Selector(match_expressions=excluded + (opted_out if opt_out else ()))


def _configuration(kind: str, name: str, hooks: tuple[Hook, ...]) -> Configuration:
    return Configuration(
        api_version="admissionregistration.k8s.io/v1",
        kind=kind,
        metadata=Meta(name=name, labels={"app.kubernetes.io/part-of": "muster"}),
        webhooks=hooks,
    )
