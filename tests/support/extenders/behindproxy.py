"""An extender that is asked through the API server's proxy, as `kubectl muster` asks it.

::

    kubectl muster ──► kube-apiserver ──► Endpoints of the Service ──► extender, a process here
      kubeconfig         real                an address of this machine that is not loopback

kube-apiserver proxies to addresses of pods alone, and never to loopback: a pod object has the
address of a veth of a namespace that the test makes (tests/support/networks/netns.py).
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.extenders.authorities import Authority, Pair
from support.extenders.installation import certificates
from support.machine import quickyaml
from support.networks.netns import underlay, why_not

from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.controlplane.programs import Program, free_port
from loadtest.testbed.deployment.muster import RBAC
from muster.cli.main import main

JSON = dict[str, Any]
MANIFESTS = RBAC.parents[1]
OWN = "/api/v1/namespaces/muster-system"
LEADER = "muster-extender-0"
RBAC_API = "/apis/rbac.authorization.k8s.io/v1"


@dataclass(frozen=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@dataclass
class Site:
    """The cluster, its users and the extender."""

    plane: ControlPlane
    api: Api
    directory: Path
    #: signs client certificates of the cluster
    people: Authority
    extender: Program
    address: str
    port: int

    async def muster(self, kubeconfig: Path, *words: str, **environment: str) -> Said:
        """Run `muster` with a kubeconfig."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "muster.cli.main", *words),
            env={"PATH": "/usr/bin:/bin", "KUBECONFIG": str(kubeconfig), **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert b"Traceback" not in err, err.decode()
        assert b"urlopen" not in err
        return Said(process.returncode or 0, out.decode(), err.decode())

    async def token(self, account: str) -> str:
        """Return a token of a ServiceAccount NAMESPACE/NAME, which is made if it is missing."""
        namespace, _, name = account.partition("/")
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        await self.api.ensure(path, {"metadata": {"name": name}})
        made = await self.api.create(f"{path}/{name}/token", {"spec": {}})
        return str(made["status"]["token"])

    def kubeconfig(self, name: str, user: JSON, **context: str) -> Path:
        """Write a kubeconfig with one context, and return it."""
        path = self.directory / f"{name}.kubeconfig"
        cluster = {
            "server": self.plane.url,
            "certificate-authority": str(self.plane.credentials.ca),
        }
        used = {"cluster": "real", "user": name, **context}
        config = {
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": used}],
            "current-context": name,
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def certified(self, shown: Pair) -> JSON:
        return {"client-certificate": str(shown.certificate), "client-key": str(shown.key)}

    async def bind(self, name: str, namespace: str, role: str, *subjects: JSON) -> None:
        """Bind a role KIND/NAME: in a namespace, or in the cluster for namespace ""."""
        kind, _, called = role.partition("/")
        scope = f"namespaces/{namespace}/rolebindings" if namespace else "clusterrolebindings"
        group = "rbac.authorization.k8s.io"
        ref = {"apiGroup": group, "kind": kind, "name": called}
        body = {"metadata": {"name": name}, "roleRef": ref, "subjects": list(subjects)}
        await self.api.create(f"{RBAC_API}/{scope}", body)

    async def endpoints(self, *, ready: bool) -> None:
        """Put the leader behind the Service, or nobody, as the endpoints controller does."""
        target = {"kind": "Pod", "name": LEADER, "namespace": "muster-system"}
        subset = {
            "addresses": [{"ip": self.address, "targetRef": target}],
            "ports": [{"name": "https", "port": self.port}],
        }
        path = f"{OWN}/endpoints"
        obj = {"metadata": {"name": "muster-extender"}, "subsets": [subset] if ready else []}
        await self.api.ensure(path, obj)
        await self.api.replace(f"{path}/muster-extender", obj)


def account(name: str) -> JSON:
    namespace, _, called = name.partition("/")
    return {"kind": "ServiceAccount", "name": called, "namespace": namespace}


def user(name: str) -> JSON:
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


EVERYBODY: JSON = {
    "kind": "Group",
    "name": "system:authenticated",
    "apiGroup": "rbac.authorization.k8s.io",
}


def _config(directory: Path, address: str, port: int) -> Path:
    """The shipped configuration; nothing is believed for longer than it takes to ask."""
    text = (MANIFESTS / "base" / "extender-config.yaml").read_text()
    made = quickyaml.load(text.replace("/etc/muster/tls", str(directory)))
    made["listen"] = {"host": address, "port": port}
    made["leaderElection"] = {"leaderElect": False}
    made["callers"]["tokens"] = {"cacheSeconds": 0, "audiences": []}
    path = directory / "extender.yaml"
    path.write_text(yaml.safe_dump(made))
    return path


def _readiness(url: str, ca: Path) -> Callable[[], Any]:
    async def ready() -> bool:
        words = ["probe", f"{url}/readyz", "--ca", str(ca)]
        return await asyncio.to_thread(main, words) == 0

    return ready


async def _service(api: Api, address: str, port: int) -> None:
    pod = {
        "metadata": {
            "name": LEADER,
            "labels": {
                "app.kubernetes.io/component": "extender",
                "muster.dev/leader": "muster-extender",
            },
        },
        "spec": {
            "schedulerName": "nobody",
            "containers": [
                {
                    "name": "extender",
                    "image": "muster",
                    "ports": [{"name": "https", "containerPort": port}],
                }
            ],
        },
    }
    await api.create(f"{OWN}/pods", pod)
    status = {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}
    await api.patch(f"{OWN}/pods/{LEADER}/status", {"status": status})
    ports = [{"name": "https", "port": 443, "targetPort": "https"}]
    service = {"metadata": {"name": "muster-extender"}, "spec": {"ports": ports}}
    await api.create(f"{OWN}/services", service)


@asynccontextmanager
async def behind_proxy(minor: Minor, directory: Path) -> AsyncIterator[Site]:
    """Run all of it; skips the tests where no namespace can be made."""
    if lacking := await why_not():
        pytest.skip(lacking)
    async with AsyncExitStack() as stack:
        net = await stack.enter_async_context(underlay(0))
        people = Authority(directory / "people", "kubernetes")
        flags = (f"--client-ca-file={people.ca}",)
        options = Options(minor=minor, rbac=RBAC, api_server_flags=flags)
        plane = await stack.enter_async_context(ControlPlane(options))
        api = await stack.enter_async_context(plane.api())
        for shipped in ("reader.yaml", "user.yaml"):
            await plane.apply(MANIFESTS / "rbac" / shipped)
        certificates(directory, net.gateway)
        port = free_port()
        command: list[str | Path] = [sys.executable, "-m", "extender"]
        command += ["--config", _config(directory, net.gateway, port)]
        command += ["--kubeconfig", plane.kubeconfig("muster-extender")]
        ready = _readiness(f"https://{net.gateway}:{port}", directory / "ca.crt")
        program = Program("extender", command, directory=directory, ready=ready)
        program.start()
        stack.push_async_callback(program.stop)
        await program.wait_ready()
        await _service(api, net.gateway, port)
        site = Site(plane, api, directory, people, program, net.gateway, port)
        await site.endpoints(ready=True)
        yield site


def rows(said: Said) -> list[JSON]:
    """Return the rows of `gangs -o json`."""
    found: list[JSON] = json.loads(said.out)
    return found
