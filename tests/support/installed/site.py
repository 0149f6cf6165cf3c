"""A real node, a control plane, and Muster in it as an operator installs it.

::

    this machine                         the node
    etcd, kube-apiserver ──────────────► muster-webhook            by its Service's endpoints
    kube-scheduler (the cluster's own)   muster-extender ◄── muster-scheduler (the second one)
    kube-controller-manager              muster-device-plugin ──► kubelet
                                         pods of gangs

The chart is installed by helm as users do it: one of each program, the second scheduler, the device
plugin. The values name the images, lower requests for a small machine and have the device plugin
simulate one.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from support.apiservers.eventually import eventually
from support.charts.helmclient import CHART, Helm
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
from support.kubelets.realnode.node import PODS, REJECTED
from support.networks.netns import run

from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane

GPU: Final = "nvidia.com/gpu"
JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
_APPS: Final = "/apis/apps/v1/namespaces"
_INSTALLED_S: Final = 300.0  # for what takes 20 s on a machine that is not crowded
_POLL_S: Final = 0.1
_CONTROLLERS: Final = (
    "daemonset-controller",
    "deployment-controller",
    "endpoints-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "job-controller",
    "replicaset-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)
_PLUGIN: Final = {
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
    helm: Helm
    values: Path
    first_gang_s: float = 0.0  # from `helm install` until the first gang was bound

    @property
    def words(self) -> tuple[str, ...]:
        """Return what installing and upgrading have in common."""
        return ("--values", str(self.values), f"--timeout={_INSTALLED_S:.0f}s")

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

    async def upgrade(self, tag: str) -> None:
        """Upgrade everything from Muster's image to another one; does not wait for the pods."""
        await self.helm("upgrade", "muster", CHART, f"--set=image.tag={tag}", *self.words)

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
        """Wait until every pod of the Job runs, and return them.

        Those that the kubelet rejected are left out, as the Job's controller replaces them: it
        admits nobody to devices in the moment in which their plugin is replaced.
        """
        found: list[JSON] = []

        async def running() -> bool:
            members = await self.members(name)
            found[:] = [p for p in members if p["status"].get("reason") != REJECTED]
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
                lines.append(self._log(meta["namespace"], meta["name"]))
        services = (self.node.directory / "log" / "services.log").read_text(errors="replace")
        lines.append(f"Services of the node: {services[-2000:]}")
        events, _ = await self.api.list_all("/api/v1/events")
        lines += [
            f"{e['reason']}: {e['involvedObject'].get('name')}: {e.get('message')}"
            for e in events[-60:]
        ]
        return "\n".join(lines)

    def _log(self, namespace: str, name: str) -> str:
        """Return the last words of a pod's containers, as the kubelet keeps them."""
        found = (self.node.directory / "log" / "pods").glob(f"{namespace}_{name}_*/*/*.log")
        return "".join(path.read_text(errors="replace")[-2000:] for path in sorted(found))


def _container(pod: JSON) -> JSON:
    found: JSON = pod["status"]["containerStatuses"][0]
    return found


def _namespace(name: str, labels: dict[str, str]) -> JSON:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def values(scheduler_tag: str) -> JSON:
    """Return the chart's values: what a user of a small machine says, and simulated devices."""
    small = {"resources": {"requests": {"cpu": "20m", "memory": "64Mi"}}}
    registry, _, repository = images.MUSTER.rpartition("/")
    return {
        "image": {"registry": registry, "repository": repository, "tag": images.NOW},
        "scheduler": {"image": {"tag": scheduler_tag}, **small},
        "extender": small,
        "webhook": small,
        "devicePlugin": {"enabled": True, "config": _PLUGIN, **small},
    }


@asynccontextmanager
async def ready(minor: Minor, directory: Path) -> AsyncIterator[Site]:
    """Yield a cluster with a node that has the images, and no Muster in it yet."""
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
        file = directory / "values.yaml"
        file.write_text(yaml.safe_dump(values(made.scheduler_tag)))
        site = Site(plane, real, api, Helm(directory, plane.kubeconfig()), file)
        # As where a cluster has all namespaces restricted: the chart's Jobs keep to it, too.
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        await api.create("/api/v1/namespaces", _namespace("muster-system", labels))
        yield site


@asynccontextmanager
async def installed(minor: Minor, directory: Path) -> AsyncIterator[Site]:
    """Yield a cluster with Muster in it that has bound its first gang, `first`, still running."""
    async with ready(minor, directory) as site:
        began = time.monotonic()
        await site.helm("install", "muster", CHART, "--create-namespace", *site.words)
        await site.until_rolled_out(ALL)
        await site.submit("first")
        await site.until_bound("first")
        site.first_gang_s = time.monotonic() - began
        yield site
