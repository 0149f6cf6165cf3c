"""Whether the webhook configurations exist, are Muster's, and reach a webhook that they trust.

The API server adds defaults to what it stores, so the wanted configuration must be *contained* in
the stored one. Whether calls arrive is not derived from caBundle but tried: a pod is created as a
dry run (nothing is stored) and must be gated, and one with a forged plan must be refused. The
webhook that guards plans fails closed, so its refusal names what is wrong with the connection.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509

from muster.cli.verification.finding import CheckFinding, broken, ok, unknown, warning
from muster.cli.verification.registration import CheckedWebhook, Configuration, expected
from muster.cli.verification.x509files import load_bundle
from muster.kube import names
from muster.kube.errors import APIError, Forbidden, NotFound
from muster.kube.http.transport import HttpRequest, Transport
from muster.kube.wire import Pod

AREA: Final = "webhook"
_COLLECTION: Final = "/apis/admissionregistration.k8s.io/v1"
_PLURALS: Final = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_APPLY: Final = "kubectl apply -k the overlay that was installed"
_NO_SCHEDULER: Final = "muster-verify"  # a name that no scheduler has
_SOON: Final = timedelta(days=7)  # the webhook renews its authority months before
# Conditions of the pods that are Muster's to plan (webhook.registration.matchconditions).
_OF_MUSTER_ALONE: Final = frozenset({"asks-for-muster", "names-a-scheduler-of-ours"})
_NOT_CALLED: Final = "failed calling webhook"  # apiserver's admission/plugin/webhook/errors


async def check(
    transport: Transport, config: Path | None, probe_namespace: str, now: datetime
) -> list[CheckFinding]:
    """Check both configurations, then try them on a pod in `probe_namespace`."""
    findings: list[CheckFinding] = []
    for configuration in await expected(config):
        findings += await _configuration(transport, configuration, now)
    return [*findings, *await _called(transport, probe_namespace)]


async def _configuration(
    transport: Transport, wanted: Configuration, now: datetime
) -> list[CheckFinding]:
    what = f"{wanted.kind} {wanted.metadata.name}"
    path = f"{_COLLECTION}/{_PLURALS[wanted.kind]}/{wanted.metadata.name}"
    try:
        raw = await transport.send(HttpRequest("GET", path))
    except NotFound:
        return [broken(AREA, f"{what} is missing", _APPLY)]
    except Forbidden as refused:
        return [unknown(AREA, f"{what}: {refused}", "run this with credentials that may read it")]
    stored = msgspec.json.decode(raw, type=Configuration)
    return [*_as_shipped(what, wanted, stored), *_bundles(what, stored, now)]


def _as_shipped(what: str, wanted: Configuration, stored: Configuration) -> Iterator[CheckFinding]:
    """Compare hook by hook, without the address, which is tried instead."""
    present = {hook.name: hook for hook in stored.webhooks}
    differing = []
    for hook in wanted.webhooks:
        found = present.get(hook.name)
        if found is None:
            differing.append(f"{hook.name} is missing")
            continue
        fields = [
            field
            for field in hook.__struct_fields__
            if field != "client_config"
            and getattr(hook, field) != getattr(found, field)
            and not (field == "match_conditions" and _asks_about_every_pod(hook, found))
        ]
        if fields:
            differing.append(f"{hook.name}: {', '.join(fields)}")
    if differing:
        text = f"{what} differs from this version's: {'; '.join(differing)}"
        yield warning(AREA, text, f"{_APPLY}, unless that was on purpose (--webhook-config)")
    else:
        yield ok(AREA, f"{what} is as shipped")


def _asks_about_every_pod(wanted: CheckedWebhook, found: CheckedWebhook) -> bool:
    """Return whether the hook differs as manifests/components/every-pod has it differ."""
    left = tuple(each for each in wanted.match_conditions if each.name not in _OF_MUSTER_ALONE)
    return len(left) < len(wanted.match_conditions) and left == found.match_conditions


def _bundles(what: str, stored: Configuration, now: datetime) -> Iterator[CheckFinding]:
    for hook in stored.webhooks:
        bundle = load_bundle(base64.b64decode(hook.client_config.ca_bundle))
        valid = [certificate for certificate in bundle if certificate.not_valid_after_utc > now]
        if not valid:
            state = "has no certificate" if not bundle else "has only expired certificates"
            yield broken(AREA, f"{what}: caBundle of {hook.name} {state}", _bundle_remedy())
        elif max(map(_end, valid)) < now + _SOON:
            end = max(map(_end, valid))
            text = f"{what}: caBundle of {hook.name} ends {end:%Y-%m-%d %H:%M} UTC"
            yield warning(AREA, text, _bundle_remedy())


def _end(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_after_utc


def _bundle_remedy() -> str:
    return (
        "a running webhook writes it within a minute: see its log; with cert-manager see "
        "cainjector's"
    )


# -- tried ---------------------------------------------------------------------------------------


async def _called(transport: Transport, namespace: str) -> list[CheckFinding]:
    pod = _pod(namespace)
    path = f"/api/v1/namespaces/{namespace}/pods"
    # Only validation handles a pod of another scheduler. Where every pod is sent, mutation takes
    # its plan away first; the other key has validation asked even then.
    keys = {names.PLAN: "{}", names.INJECT: "false"}
    forged = _pod(namespace, annotations=keys, schedulerName=_NO_SCHEDULER)
    try:
        gated = await _mutated(transport, path, pod)
        refusal = await _refusal(transport, path, forged)
    except Forbidden as refused:
        text = f"a pod cannot be tried in namespace {namespace}: {refused}"
        return [unknown(AREA, text, "name another with --namespace, or run this as administrator")]
    if _NOT_CALLED in refusal:
        return [broken(AREA, f"is not reached: {refusal}", _reach_remedy(refusal))]
    findings = [
        ok(AREA, "a forged plan is refused")
        if refusal
        else broken(AREA, "a forged plan is not refused: pods are not validated", _APPLY)
    ]
    if gated:
        return [*findings, ok(AREA, "a pod that asks for a GPU is gated")]
    text = f"a pod that asks for a GPU is not gated in namespace {namespace}"
    remedy = (
        f"is the namespace labelled {names.MANAGED}=false, or is the caBundle of the mutating "
        "configuration of another authority than the validating one's?"
    )
    return [*findings, broken(AREA, text, remedy)]


def _meta(namespace: str) -> dict[str, object]:
    return {"name": f"muster-verify-{secrets.token_hex(4)}", "namespace": namespace}


def _pod(
    namespace: str, annotations: Mapping[str, str] | None = None, **fields: object
) -> dict[str, object]:
    """Return a pod; ``fields``: of its spec."""
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {
        "name": "verify",
        "image": "none",
        "resources": limits,
        "securityContext": security,
    }
    spec = {
        "containers": [container],
        # Allowed under the strictest Pod Security profile, too.
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        **fields,
    }
    meta = {**_meta(namespace), "annotations": dict(annotations or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


async def _mutated(transport: Transport, path: str, pod: dict[str, object]) -> bool:
    try:
        raw = await transport.send(_dry(path, pod))
    except Forbidden:
        raise
    except APIError:
        return False  # the second pod shows why
    made = msgspec.json.decode(raw, type=Pod)
    return any(gate.name == names.PLAN_GATE for gate in made.spec.scheduling_gates)


async def _refusal(transport: Transport, path: str, pod: dict[str, object]) -> str:
    """Return why a pod with a plan was refused, or lost it; "" for one that keeps its plan."""
    try:
        raw = await transport.send(_dry(path, pod))
    except APIError as refused:
        if isinstance(refused, Forbidden) and "admission webhook" not in str(refused):
            raise  # RBAC's, not the webhook's
        return str(refused)
    kept = names.PLAN in msgspec.json.decode(raw, type=Pod).metadata.annotations
    return "" if kept else "the plan is taken away"


def _dry(path: str, pod: dict[str, object]) -> HttpRequest:
    return HttpRequest("POST", path, {"dryRun": "All"}, body=msgspec.json.encode(pod))


def _reach_remedy(refusal: str) -> str:
    if "x509" in refusal or "certificate" in refusal:
        return f"the API server does not trust it: {_bundle_remedy()}"
    if "no endpoints" in refusal:
        return "no webhook pod is ready: kubectl -n muster-system get pods"
    if "not found" in refusal:
        return f"its Service is missing: {_APPLY}"
    return "is a webhook pod ready, and may the API server connect to it (network policies)?"
