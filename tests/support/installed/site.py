"""A real node, a control plane, and Muster in it as an operator installs it.

::

    this machine                         the node
    etcd, kube-apiserver ──────────────► muster-webhook            by its Service's endpoints
    kube-scheduler (the cluster's own)   muster-extender ◄── muster-scheduler (the second one)
    kube-controller-manager              muster-device-plugin ──► kubelet
                                         pods of gangs

The overlay is one as users write it: `single`, the second scheduler, the device plugin; it names
the images, lowers requests of CPU for a small machine and has the device plugin simulate a machine.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from support.apiservers.eventually import eventually
from support.installed import images
from support.kubelets.realnode import (
    NodeOptions,
    RealNode,
    plane_options,
    pod_spec,
    real_node,
    skip_unless_possible,
    start_scheduler,
)
from support.kubelets.realnode.node import PODS
from support.networks.netns import run

from loadtest.testbed.client.api import JSON, STRATEGIC_PATCH, Api, ApiFailed
from loadtest.testbed.controlplane.assets import Minor, ensure_kustomize
from loadtest.testbed.controlplane.controlplane import ControlPlane, collection
from muster.cli.ops import issuing

MANIFESTS: Final = Path(__file__).parents[3] / "manifests"
GPU: Final = "nvidia.com/gpu"
JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
_APPS: Final = "/apis/apps/v1/namespaces"
_INSTALLED_S: Final = 300.0  # for what takes 20 s on a machine that is not crowded
_POLL_S: Final = 0.1
_CONTROLLERS: Final = (
    "daemonset-controller",
    "deployment-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)
_PLUGIN: Final = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "DevicePluginConfiguration",
    "simulation": {"machine": "dgx-h100"},
    "publication": {"levels": ["muster.dev/block", "muster.dev/rack"]},
}


@dataclass(frozen=True, slots=True)
class Workload:
    """One of Muster's programs, as it runs in the cluster."""

    kind: str  # "deployments", "daemonsets"
    namespace: str
    name: str
    container: str

    @property
    def path(self) -> str:
        return f"{_APPS}/{self.namespace}/{self.kind}/{self.name}"

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


EXTENDER: Final = Workload("deployments", "muster-system", "muster-extender", "extender")
WEBHOOK: Final = Workload("deployments", "muster-system", "muster-webhook", "webhook")
SCHEDULER: Final = Workload("deployments", "muster-system", "muster-scheduler", "kube-scheduler")
PLUGIN: Final = Workload("daemonsets", "muster-nodes", "muster-device-plugin", "device-plugin")
OURS: Final = (EXTENDER, WEBHOOK, PLUGIN)  # from Muster's image
ALL: Final = (*OURS, SCHEDULER)


@dataclass(slots=True)
class Site:
    """The cluster, with Muster in it."""

    plane: ControlPlane
    node: RealNode
    api: Api
    first_gang_s: float = field(default=0.0)  # from the first object until the first gang was bound

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        """Poll until the coroutine returns something true; AssertionError with all pods if not."""
        deadline = time.monotonic() + _INSTALLED_S
        while not await condition():
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {_INSTALLED_S:.0f} s: {what}\n{await self.told()}"
                )
            await asyncio.sleep(_POLL_S)

    # -- Muster's programs ------------------------------------------------------------------------

    async def until_rolled_out(self, workloads: Iterable[Workload]) -> None:
        """Wait until all pods are of the newest revision, ready, and the older ones gone."""
        for one in workloads:
            await self.until(lambda one=one: self._rolled_out(one), f"{one.name} rolled out")

    async def rolled_out(self, workloads: Iterable[Workload]) -> bool:
        return all([await self._rolled_out(one) for one in workloads])

    async def _rolled_out(self, one: Workload) -> bool:
        found = await self.api.get(one.path)
        status = found["status"]
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return False
        if one.kind == "daemonsets":
            wanted = status["desiredNumberScheduled"]
            counts = [status.get(k, 0) for k in ("updatedNumberScheduled", "numberAvailable")]
            return wanted > 0 and counts == [wanted] * 2 and len(await self.pods(one)) == wanted
        keys = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        wanted = found["spec"]["replicas"]
        return [status.get(k, 0) for k in keys] == [wanted] * 4

    async def pods(self, one: Workload) -> list[JSON]:
        """Return the pods of a program that are not about to go."""
        selector = (await self.api.get(one.path))["spec"]["selector"]["matchLabels"]
        query = ",".join(f"{key}={value}" for key, value in selector.items())
        found, _ = await self.api.list_all(one.pods, labelSelector=query)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    async def kill(self, one: Workload) -> None:
        """SIGKILL the program in one of its pods, and wait until it runs again."""
        pod = (await self.pods(one))[0]
        status = _container(pod)
        _, _, container = status["containerID"].partition("://")
        await self.ctr("tasks", "kill", "--signal", "SIGKILL", container)
        path = f"{one.pods}/{pod['metadata']['name']}"

        async def again() -> bool:
            now = _container(await self.api.get(path))
            return now["restartCount"] > status["restartCount"] and bool(now["ready"])

        await self.until(again, f"{one.name} started again")

    async def upgrade(self, one: Workload, tag: str) -> None:
        image = {"name": one.container, "image": f"{images.MUSTER}:{tag}"}
        change = {"spec": {"template": {"spec": {"containers": [image]}}}}
        await self.api.patch(one.path, change, kind=STRATEGIC_PATCH)

    async def ctr(self, *words: str) -> str:
        """Ask the node's containerd."""
        ctr = self.node.assets.containerd.with_name("ctr")
        socket = str(self.node.directory / "containerd.sock")
        return await run(*self.node.command(ctr, "-a", socket, "-n", "k8s.io", *words))

    # -- gangs ------------------------------------------------------------------------------------

    async def submit(self, name: str, size: int = 2) -> None:
        """Create an Indexed Job of so many pods with a GPU each."""
        container = {"resources": {"limits": {GPU: "1"}, "requests": {"cpu": "10m"}}}
        spec = {"restartPolicy": "Never", **pod_spec({GPU: 1}, **container)}
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {
                "completionMode": "Indexed",
                "completions": size,
                "parallelism": size,
                "template": {"spec": spec},
            },
        }
        await self.api.create(JOBS, job)

    async def members(self, name: str) -> list[JSON]:
        query = f"batch.kubernetes.io/job-name={name}"
        found, _ = await self.api.list_all(PODS, labelSelector=query)
        return found

    async def until_bound(self, name: str, size: int = 2) -> None:
        """Wait until every pod of the Job has a node."""

        async def bound() -> bool:
            found = await self.members(name)
            return len(found) == size and all("nodeName" in pod["spec"] for pod in found)

        await self.until(bound, f"gang {name} bound")

    async def until_running(self, name: str, size: int = 2) -> list[JSON]:
        """Wait until every pod of the Job runs, and return them."""
        found: list[JSON] = []

        async def running() -> bool:
            found[:] = await self.members(name)
            return len(found) == size and all(p["status"].get("phase") == "Running" for p in found)

        await self.until(running, f"gang {name} running")
        return found

    async def remove(self, name: str) -> None:
        """Delete a Job and wait until its pods are gone."""
        await self.api.delete(f"{JOBS}/{name}")

        async def gone() -> bool:
            return not await self.members(name)

        await self.until(gone, f"gang {name} gone")

    async def told(self) -> str:
        """Return what the API server shows of every pod, with the last words of each program."""
        found, _ = await self.api.list_all("/api/v1/pods")
        lines = []
        for pod in found:
            meta, status = pod["metadata"], pod["status"]
            states = [c.get("state") for c in status.get("containerStatuses", ())]
            lines.append(f"{meta['namespace']}/{meta['name']} {status.get('phase')} {states}")
            lines += [
                f"  {c['type']}: {c.get('message')}"
                for c in status.get("conditions", ())
                if c["status"] != "True"
            ]
            if meta["namespace"] != "default":
                lines.append(await self._log(meta["namespace"], meta["name"]))
        events, _ = await self.api.list_all("/api/v1/events")
        lines += [
            f"{e['reason']}: {e['involvedObject'].get('name')}: {e.get('message')}"
            for e in events[-60:]
        ]
        return "\n".join(lines)

    async def _log(self, namespace: str, name: str) -> str:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/log"
        try:
            said = await self.api.get(path, tailLines="15")
        except ApiFailed as refused:
            return f"  {refused.message}"
        return str(said.get("text", said))


def _container(pod: JSON) -> JSON:
    found: JSON = pod["status"]["containerStatuses"][0]
    return found


def overlay(directory: Path, scheduler_tag: str) -> None:
    """Write the overlay."""
    (directory / "device-plugin.yaml").write_text(yaml.safe_dump(_PLUGIN))
    less = {
        "op": "replace",
        "path": "/spec/template/spec/containers/0/resources/requests/cpu",
        "value": "20m",
    }
    manifests = os.path.relpath(MANIFESTS, directory)
    components = ("second-scheduler", "device-plugin")
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [f"{manifests}/overlays/single"],
        "components": [f"{manifests}/components/{name}" for name in components],
        "configMapGenerator": [
            {
                "name": PLUGIN.name,
                "namespace": PLUGIN.namespace,
                "behavior": "replace",
                "files": ["device-plugin.yaml"],
            }
        ],
        "images": [
            {"name": "muster", "newName": images.MUSTER, "newTag": images.NOW},
            {"name": images.KUBE_SCHEDULER, "newTag": scheduler_tag},
        ],
        "patches": [{"target": {"kind": "Deployment"}, "patch": yaml.safe_dump([less])}],
    }
    (directory / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))


async def install(site: Site, directory: Path, scheduler_tag: str) -> None:
    """Do what docs/runbooks/install.md says, and wait until everything is ready."""
    folder = directory / "overlay"
    folder.mkdir()
    overlay(folder, scheduler_tag)
    rendered = await run(str(await asyncio.to_thread(ensure_kustomize)), "build", str(folder))
    issuing.write(directory / "certs", "muster-system", ("10.96.0.80",), 90)
    secrets = (directory / "certs" / "secrets.yaml").read_text()
    objects = [obj for obj in yaml.safe_load_all(rendered) if obj]
    namespaces = [obj for obj in objects if obj["kind"] == "Namespace"]
    others = [obj for obj in objects if obj["kind"] != "Namespace"]
    for obj in (*namespaces, *yaml.safe_load_all(secrets), *others):
        await site.api.create(f"{collection(obj)}?fieldValidation=Strict", obj)
    await site.until_rolled_out(ALL)


@asynccontextmanager
async def installed(minor: Minor, directory: Path) -> AsyncIterator[Site]:
    """Yield a cluster with Muster in it that has bound its first gang, `first`, still running."""
    await skip_unless_possible()
    made = await asyncio.to_thread(images.make, directory, minor)
    async with AsyncExitStack() as stack:
        options = plane_options(minor, service_accounts=True)
        plane = await stack.enter_async_context(ControlPlane(options))
        await plane.start_controllers(*_CONTROLLERS)
        await start_scheduler(plane)
        labels = {"muster.dev/devices": "true"}
        node = NodeOptions(connected=True, labels=labels)
        real = await stack.enter_async_context(real_node(plane, node))
        for archive in made.archives:
            await real.import_images(archive)
        api = await stack.enter_async_context(plane.api())
        await eventually(api, "/api/v1/namespaces/default/serviceaccounts/default", bool)
        site = Site(plane, real, api)
        began = time.monotonic()
        await install(site, directory, made.scheduler_tag)
        await site.submit("first")
        await site.until_bound("first")
        site.first_gang_s = time.monotonic() - began
        yield site
