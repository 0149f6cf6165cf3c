"""A real Kubernetes node for tests: kubelet, containerd and runc in namespaces of this machine.

::

    ControlPlane (loopback, etcd + kube-apiserver + kube-scheduler, all real)
         ▲  │ logs
         │  ▼                                        docs/real-node.md draws the inside
    ┌── node-a ───────────┐  ┌── node-b ───────────┐
    │ kubelet, containerd │  │ kubelet, containerd │   as many as a test wants
    │ pods of the witness │  │                     │
    └─────────────────────┘  └─────────────────────┘

How to use it::

    @pytest_asyncio.fixture(scope="module", loop_scope="module")
    async def node(minor):
        async with real_cluster(minor) as node:   # skips, saying why, where it can't
            yield node                            # about 5 s with the control plane

    node.device_plugins / "x.sock"     the kubelet's folders by paths of the test's: also
    node.plugins_registry, .cdi        plugins_registry, and where containerd looks for CDI specs
    node.pod_resources                 the socket of the pod-resources API

    await node.until_allocatable("example.com/gpu", 4)
    await node.run_pod("p", {"example.com/gpu": 2}, look_at=["/dev/gpu0"])
    seen = await node.seen("p")        seen.env["X"], seen.paths["/dev/gpu0"]["major"]
    await node.until_event("p", "UnexpectedAdmissionError"); await node.delete_pod("p")

    await node.restart_kubelet()       also stop_kubelet, kill_kubelet, start_kubelet
    await node.crash("p")              the container dies and runs again; also kill_container
    node.checkpoint()                  what the kubelet has on disk of who has which devices
    node.kubelet.suspend()             node.kubelet and node.containerd are Programs:
    node.kubelet.log_tail()            pid, log, cpu_seconds, suspend, resume

    node.program("name", command, ready=…)   a program of ours on the node: .start(), .wait_ready()
    node.kubeconfig("muster-extender")       for it: the API server as the node reaches it

A plugin may as well run in the test itself: the sockets are the same files. With a control plane of
one's own (Muster's parts beside it), it is ``ControlPlane(plane_options(minor, rbac=…))``, then
``real_node(plane, NodeOptions(name=…, numa_nodes=2, topology_manager_policy="restricted"))``;
`skip_unless_possible` comes first.

All of it ends with its block and leaves no process, mount, device, control group or file; when the
test run is killed the processes end with it, and the next run removes the rest.
"""

from support.kubelets.realnode.cluster import (
    plane_options,
    real_cluster,
    skip_unless_possible,
    start_scheduler,
    why_not,
)
from support.kubelets.realnode.node import RealNode, real_node
from support.kubelets.realnode.pods import Seen, container, pod_spec
from support.kubelets.realnode.settings import NodeOptions

__all__ = [
    "NodeOptions",
    "RealNode",
    "Seen",
    "container",
    "plane_options",
    "pod_spec",
    "real_cluster",
    "real_node",
    "skip_unless_possible",
    "start_scheduler",
    "why_not",
]
