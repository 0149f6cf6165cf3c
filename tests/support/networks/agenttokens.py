"""The identity of an agent's pod on a node: a token whose claim names the node."""

from pathlib import Path

import yaml

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube.http import auth
from muster.kube.http.auth import Auth

ACCOUNT = "/api/v1/namespaces/muster-system/serviceaccounts/muster-vni-agent/token"


async def token(api: Api, node: str) -> str:
    """Return a token of the agent's ServiceAccount for a node that exists, none for ""."""
    spec = {}
    if node:
        uid = (await api.get(f"/api/v1/nodes/{node}"))["metadata"]["uid"]
        spec = {"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}}
    asked = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
    made: str = (await api.create(ACCOUNT, asked))["status"]["token"]
    return made


async def identity(api: Api, plane: ControlPlane, node: str, folder: Path) -> Auth:
    """Return what the agent on ``node`` shows the API server; ``folder`` keeps its kubeconfig."""
    config = yaml.safe_load(plane.kubeconfig("observer").read_text())
    config["users"][0]["user"] = {"token": await token(api, node)}
    path = folder / f"agent-{node}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return auth.load(path)
