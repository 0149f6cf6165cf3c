"""The webhook configurations as they should be and as they are stored.

The webhook itself prints the wanted ones (`python -m webhook --print-configurations`) from its
configuration, because the command line never imports the programs.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
import yaml

from muster.cli.verification import shipped


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the structs of admissionregistration.k8s.io/v1, with the compared fields only."""


class CheckedRule(_Wire, frozen=True):
    """RuleWithOperations: which requests the webhook gets."""

    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()


class Expression(_Wire, frozen=True):
    """meta/v1 LabelSelectorRequirement."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Selector(_Wire, frozen=True):
    """meta/v1 LabelSelector."""

    match_expressions: tuple[Expression, ...] = ()


class Condition(_Wire, frozen=True):
    """MatchCondition."""

    name: str
    expression: str


class Client(_Wire, frozen=True):
    """WebhookClientConfig, with the authority only."""

    ca_bundle: str = ""


class CheckedWebhook(_Wire, frozen=True):
    """MutatingWebhook or ValidatingWebhook."""

    name: str
    client_config: Client = Client()
    rules: tuple[CheckedRule, ...] = ()
    namespace_selector: Selector = Selector()
    match_conditions: tuple[Condition, ...] = ()
    failure_policy: str = ""
    timeout_seconds: int = 0
    side_effects: str = ""
    match_policy: str = ""
    reinvocation_policy: str = ""


class Meta(_Wire, frozen=True):
    """meta/v1 ObjectMeta."""

    name: str = ""


class Configuration(_Wire, frozen=True):
    """MutatingWebhookConfiguration or ValidatingWebhookConfiguration."""

    kind: str
    metadata: Meta = Meta()
    webhooks: tuple[CheckedWebhook, ...] = ()


class PrintFailed(Exception):
    """The webhook refuses its configuration; the message is the webhook's."""


async def expected(config: Path | None) -> list[Configuration]:
    """Return what a webhook with this configuration registers; None: the shipped one."""
    file = config or shipped.path("base", "webhook-config.yaml")
    command = (sys.executable, "-m", "webhook", "--config", str(file), "--print-configurations")
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, complaint = await process.communicate()
    if process.returncode:
        raise PrintFailed(complaint.decode().strip())
    return [msgspec.convert(doc, type=Configuration) for doc in yaml.safe_load_all(out)]
