"""The identity of an agent's pod on a node: a token whose claim names the node."""

from pathlib import Path

import yaml
from support.apiservers.boundtokens import bound_token
from support.machine import quickyaml

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube.http import auth
from muster.kube.http.auth import Auth


async def token(api: Api, node: str) -> str:
    """Return a token of the agent's ServiceAccount for a node that exists, none for ""."""
    return await bound_token(api, "muster-system", "muster-vni-agent", node)


async def identity(api: Api, plane: ControlPlane, node: str, folder: Path) -> Auth:
    """Return what the agent on ``node`` shows the API server; ``folder`` keeps its kubeconfig."""
    config = quickyaml.load(plane.kubeconfig("observer").read_text())
    config["users"][0]["user"] = {"token": await token(api, node)}
    path = folder / f"agent-{node}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return auth.load(path)
