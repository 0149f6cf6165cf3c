"""The webhook configurations: what keeps them from ever locking a cluster up."""

import base64

import msgspec
import pytest

from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.registry import markers
from webhook.registration.configurations import (
    Configuration,
    FailurePolicies,
    Hook,
    Target,
    configurations,
    to_json,
    to_yaml,
)


def hooks() -> list[Hook]:
    return hooks_of(b"pem")


def hooks_of(bundle: bytes) -> list[Hook]:
    both = configurations(bundle, Target())
    return [hook for configuration in both for hook in configuration.webhooks]


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook.name)
def test_every_hook_keeps_out_of_the_system_and_of_the_way(hook: Hook) -> None:
    selector = hook.namespace_selector.match_expressions[0]
    assert (selector.key, selector.operator) == ("kubernetes.io/metadata.name", "NotIn")
    assert {"kube-system", "muster-system", "kube-node-lease"} <= set(selector.values)
    assert hook.timeout_seconds <= 5
    writes = hook.name.partition(".")[2].startswith("mutate")  # reservations, Events
    assert hook.side_effects == ("NoneOnDryRun" if writes else "None")
    assert hook.admission_review_versions == ("v1",)
    assert hook.match_conditions
    resources = {name for rule in hook.rules for name in rule.resources}
    assert not any("*" in name or "/" in name for name in resources)
    assert resources.isdisjoint({"nodes", "leases", "mutatingwebhookconfigurations"})


def test_only_what_guards_plans_fails_closed() -> None:
    policies = {hook.name: hook.failure_policy for hook in hooks()}
    assert policies == {
        "pods.mutate.muster.dev": "Ignore",
        "jobs.mutate.muster.dev": "Ignore",
        "pods.validate.muster.dev": "Fail",
        "templates.validate.muster.dev": "Ignore",
    }
    open_ = configurations(b"", Target(), failure=FailurePolicies(validate_pods="Ignore"))[1]
    assert {hook.failure_policy for hook in open_.webhooks} == {"Ignore"}


def test_mutation_is_asked_again_when_others_changed_the_pod() -> None:
    assert [hook.reinvocation_policy for hook in hooks()] == ["IfNeeded", "IfNeeded", "", ""]


def test_the_filter_knows_every_marker_and_every_accelerator() -> None:
    policy = ManagedPolicy()
    (mutating, _) = configurations(b"", Target(), policy=policy)[0].webhooks
    expression = mutating.match_conditions[1].expression
    for name in (*markers(), *policy.accelerators.resources, *policy.accelerators.prefixes):
        assert f'"{name}"' in expression


def test_where_override_policies_may_be_for_any_pod_every_unbound_one_is_sent() -> None:
    mutating, validating = configurations(b"", Target(), every_pod=True)
    pods, jobs = mutating.webhooks
    assert [condition.name for condition in pods.match_conditions] == ["is-not-bound"]
    assert [jobs, *validating.webhooks] == hooks_of(b"")[1:]


def test_a_service_or_an_url_is_where_to_call() -> None:
    service = configurations(b"pem", Target(namespace="other"))[0].webhooks[0].client_config
    assert service.service is not None
    assert (service.service.namespace, service.service.path) == ("other", "/mutate")
    assert base64.b64decode(service.ca_bundle) == b"pem"
    url = configurations(b"", Target(url="https://127.0.0.1:1/"))[1].webhooks[0].client_config
    assert (url.url, url.service) == ("https://127.0.0.1:1/validate", None)


def test_json_and_yaml_say_the_same() -> None:
    for configuration in configurations(b"pem", Target()):
        as_json = msgspec.json.decode(to_json(configuration), type=Configuration)
        assert msgspec.yaml.decode(to_yaml(configuration), type=Configuration) == as_json
