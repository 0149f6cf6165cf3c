"""The webhook as a program, against a real control plane."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.controlplane import ControlPlane
from loadtest.testbed.controlplane.programs import Program

WEBHOOK_USER = "system:serviceaccount:muster-system:muster-webhook"
EXTENDER_USER = "system:serviceaccount:muster-system:muster-extender"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
LISTENING = re.compile(rb'^\{"listening".*\n', re.MULTILINE)
START_S = 60  # a crowded machine; alone it takes one second


@asynccontextmanager
async def running(config: Path, *arguments: str) -> AsyncIterator[str]:
    """Run `python -m webhook` inside the block; gives the base URL it prints."""
    path = config.parent / "webhook.log"
    command = [sys.executable, "-m", "webhook", "--config", str(config), *arguments]
    with path.open("ab") as log:
        begin = log.tell()
        process = Program.launch(command, None, log)
    try:
        async with asyncio.timeout(START_S):
            while not (found := LISTENING.search(path.read_bytes(), begin)):
                assert process.poll() is None, path.read_text()
                await asyncio.sleep(0.02)
        yield json.loads(found[0])["listening"]
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait)
    assert code == 0, path.read_text()


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
