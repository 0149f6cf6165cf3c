"""Tokens of ServiceAccounts as pods on a node have them: a claim in them names the node."""

from loadtest.testbed.client.api import Api


async def bound_token(api: Api, namespace: str, account: str, node: str) -> str:
    """Return a token of the ServiceAccount for a node that exists, one that names none for ""."""
    spec = {}
    if node:
        uid = (await api.get(f"/api/v1/nodes/{node}"))["metadata"]["uid"]
        spec = {"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    asked = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
    return str((await api.create(path, asked))["status"]["token"])
