"""A kubelet for tests: all of it that a device plugin can see, and nothing else.

::

    async with FakeKubelet(short_tmp, seed=7, policy="restricted") as kubelet:
        …start the plugin on kubelet.folder (device-plugins/) or kubelet.registry…
        await kubelet.until_allocatable("nvidia.com/gpu", 8)
        pod = asking("a", {"nvidia.com/gpu": 2, "rdma/hca": 1}, created=1)
        options = await kubelet.run(pod)        # admitted, PreStartContainer, RunOptions
        kubelet.ids(pod, "nvidia.com/gpu")      # what it was given
        await kubelet.admit(*pods)              # many at once, by creation; see kubelet.failed
        await kubelet.start_container(pod)      # again: from the cached answer
        kubelet.end(pod)                        # its devices are free at the next admission
        await kubelet.restart()                 # checkpoint, sockets deleted, pods stay
        await kubelet.reboot()                  # likewise, but no container runs any more
        kubelet.moods.talking.clear()           # Register is not answered

What it does follows the sources of kubelet 1.35 (each module names its file): Register dials back
before it answers; each list replaces the last; the end of a stream makes all devices unhealthy,
for five minutes of ``clock``; Go's random orders are shuffled by ``seed``; the topology manager's
hints and policies in container scope; the pod-resources API on ``kubelet.pod_resources`` with all
its traps. After every change it checks that no device is at two pods (``tables.validate``).

``root`` should be short (``support.machine.shortpath``): a socket's path has at most 107 bytes.
"""

from support.kubelets.fakekubelet.kubelet import FakeKubelet, forget_checkpoint
from support.kubelets.fakekubelet.pods import (
    AdmissionError,
    Container,
    Given,
    Pod,
    RunOptions,
    StartError,
    asking,
)

__all__ = [
    "AdmissionError",
    "Container",
    "FakeKubelet",
    "Given",
    "Pod",
    "RunOptions",
    "StartError",
    "asking",
    "forget_checkpoint",
]
