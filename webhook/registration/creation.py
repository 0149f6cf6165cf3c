"""Makes the webhook configurations where this process may (the demo, tests).

A cluster applies the shipped manifests instead and gives no right to create; there only
``caBundle`` is kept right (``webhook.certificates.publisher``).
"""

from typing import Final

import msgspec

from webhook.certificates.clusterapi import ClusterApi
from webhook.certificates.publisher import COLLECTION
from webhook.errors import WebhookError
from webhook.registration.configurations import Configuration, to_json

_PLURALS: Final = {
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_ROUNDS: Final = 5  # against others who change the same object


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str


class _Present(msgspec.Struct):
    metadata: _Meta


async def register(api: ClusterApi, configuration: Configuration) -> None:
    """Create the configuration, or replace the one of its name."""
    path = f"{COLLECTION}{_PLURALS[configuration.kind]}"
    named = f"{path}/{configuration.metadata.name}"
    for _ in range(_ROUNDS):
        if await api.create(path, to_json(configuration)):
            return
        present = await api.read(named)
        if present is None:
            continue
        version = msgspec.json.decode(present, type=_Present).metadata.resource_version
        meta = msgspec.structs.replace(configuration.metadata, resource_version=version)
        replacement = msgspec.structs.replace(configuration, metadata=meta)
        if await api.replace(named, to_json(replacement)):
            return
    raise WebhookError(f"{named}: others keep changing it")
