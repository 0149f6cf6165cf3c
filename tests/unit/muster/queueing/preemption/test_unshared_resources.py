"""What no queue is entitled to is taken back from nobody.

::

    a   entitled 8 GPUs, nothing is written about CPU
    b   entitled 8 GPUs, later also 8 CPUs
"""

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.queueing.preemption.usagetrial import UsageTrial

GPU, CPU = Cell("", "gpu"), Cell("", "cpu")
ROOT, A, B = map(QueueName, ("root", "a", "b"))


def test_a_resource_is_borrowed_only_once_somebody_is_entitled_to_it() -> None:
    tree = QuotaTree()
    tree.put(QueueSpec(ROOT, is_whole=True, is_cluster=True))
    for name in (A, B):
        tree.put(QueueSpec(name, ROOT, {GPU: Quota(8)}))
    tree.charge(A, {GPU: 8, CPU: 64})
    node = tree.find(A)
    assert node is not None

    assert not UsageTrial(tree).borrows(node, CPU)

    tree.put(QueueSpec(B, ROOT, {GPU: Quota(8), CPU: Quota(8)}))
    assert UsageTrial(tree).borrows(node, CPU)
    assert not UsageTrial(tree).borrows(node, GPU)
