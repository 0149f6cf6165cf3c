"""Tokens of ServiceAccounts as pods on a node have them: a claim in them names the node."""

from loadtest.testbed.client.api import Api


async def bound_token(api: Api, namespace: str, account: str, node: str) -> str:
    """Return a token of the ServiceAccount for a node that exists, one that names none for ""."""
    spec: dict[str, object] = {}
    if node:
        uid = (await api.get(f"/api/v1/nodes/{node}"))["metadata"]["uid"]
        spec = {"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}}
    return await _requested(api, namespace, account, spec)


async def pods_token(api: Api, namespace: str, account: str, node: str) -> str:
    """Return the token of a pod of the ServiceAccount on a node, as its kubelet asks for it.

    Creates the pod, "plugin-NODE".
    """
    name = f"plugin-{node}"
    container = {"name": "main", "image": "muster"}
    spec = {"nodeName": node, "serviceAccountName": account, "containers": [container]}
    pod = {"metadata": {"name": name}, "spec": spec}
    uid = (await api.create(f"/api/v1/namespaces/{namespace}/pods", pod))["metadata"]["uid"]
    bound = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    return await _requested(api, namespace, account, {"boundObjectRef": bound})


async def _requested(api: Api, namespace: str, account: str, spec: dict[str, object]) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    asked = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
    return str((await api.create(path, asked))["status"]["token"])
