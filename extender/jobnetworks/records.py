"""What is known about jobs' networks, and what a release writes into a pod from it.

::

    watches ──► pools, attached ─┐
                                 ├──► extra: the annotation of one pod, in its release
    JobNetworks ──► book, writes ┘

The leader's work (``extender.jobnetworks.assignment``) updates the book and the objects; every
release reads them.
"""

from extender.engine import Engine
from extender.jobnetworks.addresses import AttachedPods
from extender.jobnetworks.pools import NetPools
from extender.jobnetworks.writes import NetworkWrites
from extender.pendingpods import PendingPod
from muster.cluster.ids import PodUid
from muster.cluster.tables.holds import Hold
from muster.kube.client import KubeClient
from muster.kube.kinds import multus
from muster.kube.kinds.jobnetworks import attachment_name
from muster.kube.kinds.multus import Selection
from muster.kube.writing.podbodies import NOTHING, ReleaseExtra
from muster.vni.addresses import address
from muster.vni.book import VniBook


class NetworkRecords:
    """Pools, pods with a network, VNIs in use, and the objects of networks."""

    def __init__(self, engine: Engine, client: KubeClient) -> None:
        self._engine = engine
        #: the pools and the nodes' agents, as the watches show them
        self.pools = NetPools()
        #: the pods that carry a network
        self.attached = AttachedPods()
        #: the VNI of each gang
        self.book = VniBook()
        #: the objects of the networks
        self.writes = NetworkWrites(client, self.book)

    def extra(self, uid: PodUid, pod: PendingPod, hold: Hold) -> ReleaseExtra:
        """Return the annotation that a release writes.

        Raises ``ValueError`` if the subnet is full, or the pod's own annotation cannot be merged.
        """
        if not self.book.lines:
            return NOTHING
        line = None if hold.gang is None else self.book.of(hold.gang)
        network = None if line is None else self.writes.objects.get(line.vni)
        row = self._engine.state.pod_row(uid)
        if line is None or network is None or row is None:
            return NOTHING
        snapshot = self._engine.state.snapshot()
        if not self.pools.selects(line.pool, snapshot, int(snapshot.pods.labels[row])):
            return NOTHING
        subnet = self.writes.subnet(line.vni)
        place = self.attached.place(uid, line.vni, subnet, hold.rank)
        if place is None:
            raise ValueError(f"VNI {line.vni}: no address is left in {subnet} for pod {pod.ref}")
        namespace = network.spec.namespace
        mine = Selection(attachment_name(line.vni), namespace, address(subnet, place))
        text = multus.merged(pod.networks, mine)
        return ReleaseExtra(((multus.ANNOTATION, text),), pod.version if pod.networks else "")
