"""Keeps ``caBundle`` right in the webhook configurations.

Certificates of others in a bundle are kept, expired ones are dropped, and each patch is
bound to the resourceVersion that was read: two replicas cannot undo each other's work.
"""

import base64
from collections.abc import Sequence
from datetime import datetime
from typing import Final, Protocol

import msgspec

from webhook.certificates.clusterapi import ClusterApi
from webhook.certificates.rotation import Authorities, merged

COLLECTION: Final = "/apis/admissionregistration.k8s.io/v1/"


class BundlePublisher(Protocol):
    """Shows the bundle to whoever calls the webhook."""

    async def publish(self, authorities: Authorities, now: datetime) -> bool:
        """Make the bundle visible; return whether it was visible before already."""


class NoPublisher:
    """For set-ups in which another program reads ``ca.crt``: counts as always published."""

    async def publish(self, authorities: Authorities, now: datetime) -> bool:
        """Do nothing."""
        del authorities, now
        return True


class _Client(msgspec.Struct, rename="camel", omit_defaults=True):
    ca_bundle: str = ""


class _Hook(msgspec.Struct, rename="camel"):
    name: str
    client_config: _Client = msgspec.field(default_factory=_Client)


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Configuration(msgspec.Struct, rename="camel"):
    metadata: _Meta
    webhooks: list[_Hook] = msgspec.field(default_factory=list)


class ConfigurationPublisher:
    """Patches the named configurations. RBAC: get and patch on those names."""

    def __init__(self, api: ClusterApi, paths: Sequence[str]) -> None:
        """``paths``: such as ``mutatingwebhookconfigurations/muster-webhook``."""
        self._api = api
        self._paths = tuple(COLLECTION + path for path in paths)

    async def publish(self, authorities: Authorities, now: datetime) -> bool:
        """Patch what lacks the bundle; a missing configuration counts as not showing it."""
        shown = [await self._publish(path, authorities, now) for path in self._paths]
        return all(shown)

    async def _publish(self, path: str, authorities: Authorities, now: datetime) -> bool:
        body = await self._api.read(path)
        if body is None:
            return False
        configuration = msgspec.json.decode(body, type=_Configuration)
        changed = [
            _Hook(hook.name, _Client(_encode(bundle)))
            for hook in configuration.webhooks
            if (bundle := merged(present := _decode(hook), authorities, now)) != present
        ]
        if not changed:
            return True
        change = _Configuration(configuration.metadata, changed)
        await self._api.patch(path, msgspec.json.encode(change))
        return False


def _decode(hook: _Hook) -> bytes:
    return base64.b64decode(hook.client_config.ca_bundle)


def _encode(bundle: bytes) -> str:
    return base64.b64encode(bundle).decode()
