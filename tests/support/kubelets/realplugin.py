"""The device plugin as a program beside a real kubelet, with the rights that it is shipped with."""

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml
from support.apiservers.boundtokens import bound_token
from support.kubelets.realnode import RealNode
from support.machine import quickyaml

from loadtest.testbed.controlplane.controlplane import collection
from loadtest.testbed.controlplane.programs import Program, free_port

COMPONENT: Final = Path(__file__).parents[3] / "manifests/components/device-plugin"


@asynccontextmanager
async def plugin_on(
    node: RealNode, settings: Mapping[str, Any]
) -> AsyncIterator[tuple[Program, Path]]:
    """Run the plugin for a real node with the shipped rights, its token made for that node.

    It simulates a DGX H100; yields it with the file that switches its faults. `settings` are its
    configuration.
    """
    faults = node.directory / "faults.yaml"
    config = node.directory / "device-plugin.yaml"
    config.write_text(yaml.safe_dump(dict(settings)))
    port = free_port()
    program = Program(
        "device-plugin",
        [
            *(sys.executable, "-m", "deviceplugin", "--config", config, "--port", str(port)),
            *("--simulate", "dgx-h100", "--faults", faults, "--node-name", node.name),
            *("--kubelet-dir", node.directory / "kubelet", "--cdi-dir", node.cdi),
            *("--kubeconfig", await kubeconfig(node)),
        ],
        directory=node.directory,
        ready=lambda: _answers(f"http://127.0.0.1:{port}"),
    )
    program.start()
    await program.wait_ready()
    try:
        yield program, faults
    finally:
        await program.stop()


async def kubeconfig(node: RealNode) -> Path:
    """Install rights and policy as shipped; return credentials as the DaemonSet's pod has them."""
    files = ("rbac.yaml", "admission.yaml")
    for file in files:
        for obj in quickyaml.load_all((COMPONENT / file).read_text()):
            await node.api.create(f"{collection(obj)}?fieldValidation=Strict", obj)
    token = await bound_token(node.api, "muster-nodes", "muster-device-plugin", node.name)
    config = quickyaml.load(node.plane.kubeconfig("observer").read_text())
    config["users"][0]["user"] = {"token": token}
    written = node.directory / "plugin.kubeconfig"
    written.write_text(yaml.safe_dump(config))
    return written


async def _answers(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as answer:
            return answer.status == HTTPStatus.OK
    except (aiohttp.ClientError, TimeoutError):
        return False
