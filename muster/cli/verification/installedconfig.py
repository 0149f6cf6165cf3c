"""The configuration file of an installed program, by way of its Deployment and its ConfigMap."""

from __future__ import annotations

from typing import Final

import msgspec

from muster.kube.http.transport import HttpRequest, Transport

_VOLUME: Final = "config"


class _Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the objects that are read."""


class _ConfigMapRef(_Wire, frozen=True):
    name: str = ""


class _Volume(_Wire, frozen=True):
    name: str
    config_map: _ConfigMapRef = _ConfigMapRef()


class _PodSpec(_Wire, frozen=True):
    volumes: tuple[_Volume, ...] = ()


class _Template(_Wire, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DeploymentSpec(_Wire, frozen=True):
    template: _Template = _Template()


class _Deployment(_Wire, frozen=True):
    spec: _DeploymentSpec = _DeploymentSpec()


class _ConfigMap(_Wire, frozen=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


async def configuration(transport: Transport, namespace: str, name: str, key: str) -> str:
    """Return the text of ``key`` in the ConfigMap that Deployment ``name`` mounts as ``config``.

    Raises ``KubeError``, ``NotFound`` where there is no such Deployment or ConfigMap.
    """
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    raw = await transport.send(HttpRequest("GET", path))
    volumes = msgspec.json.decode(raw, type=_Deployment).spec.template.spec.volumes
    named = [volume.config_map.name for volume in volumes if volume.name == _VOLUME]
    path = f"/api/v1/namespaces/{namespace}/configmaps/{named[0] if named else name}"
    raw = await transport.send(HttpRequest("GET", path))
    return msgspec.json.decode(raw, type=_ConfigMap).data.get(key, "{}")
