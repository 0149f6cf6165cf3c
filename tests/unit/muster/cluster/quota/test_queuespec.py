"""What an administrator wrote about a queue."""

import pytest

from muster.cluster.quota.queuespec import QueueName, QueueSpec


def test_a_queue_that_is_the_cluster_has_no_parent() -> None:
    all_, root = QueueName("muster/all"), QueueName("muster/root")
    assert QueueSpec(all_, is_cluster=True).parent is None
    with pytest.raises(ValueError, match="queue muster/all is the cluster, and is below muster/ro"):
        QueueSpec(all_, root, is_cluster=True)
