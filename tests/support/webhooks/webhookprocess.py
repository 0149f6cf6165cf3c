"""The webhook as a program, against a real control plane."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.controlplane import ControlPlane

WEBHOOK_USER = "system:serviceaccount:muster-system:muster-webhook"
EXTENDER_USER = "system:serviceaccount:muster-system:muster-extender"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
START_S = 60  # a crowded machine; alone it takes one second


@asynccontextmanager
async def running(config: Path, *arguments: str) -> AsyncIterator[str]:
    """Run `python -m webhook` inside the block; gives the base URL it prints."""
    with (config.parent / "webhook.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "webhook", "--config", str(config), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        assert process.stdout is not None
        try:
            line = await asyncio.wait_for(process.stdout.readline(), START_S)
            assert line, (config.parent / "webhook.log").read_text()
            yield json.loads(line)["listening"]
        finally:
            if process.returncode is None:
                process.terminate()
            code = await process.wait()
        assert code == 0, (config.parent / "webhook.log").read_text()


async def grant(plane: ControlPlane) -> None:
    """Give Muster's webhook what it needs, and a plain user rights on pods and jobs."""
    anything = ["get", "list", "create", "update", "patch", "delete"]
    rules = {
        WEBHOOK_USER: [
            _rule("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
            _rule("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
            _rule("", "secrets"),
            _rule("events.k8s.io", "events"),
        ],
        EXTENDER_USER: [_rule("", "pods")],
        "user": [
            {"apiGroups": ["", "batch", "apps"], "resources": ["*"], "verbs": anything},
        ],
    }
    async with plane.api() as api:
        await api.create(
            "/api/v1/namespaces",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "muster-system"}},
        )
        for user, granted in rules.items():
            await _bind(api, user, granted)


def _rule(group: str, resource: str) -> dict[str, list[str]]:
    verbs = ["get", "create", "update", "patch"]
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs}


async def _bind(api: Api, user: str, rules: list[dict[str, list[str]]]) -> None:
    name, group = "test-" + user.replace(":", "-"), "rbac.authorization.k8s.io"
    meta = {"name": name}
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta,
        "subjects": [{"kind": "User", "name": user, "apiGroup": group}],
        "roleRef": {"kind": "ClusterRole", "name": name, "apiGroup": group},
    }
    await api.create(f"{RBAC}/clusterroles", role)
    await api.create(f"{RBAC}/clusterrolebindings", binding)
