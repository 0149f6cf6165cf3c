"""Devices in the naive model: what nodes tell of them, and who must have which.

Some nodes list GPUs gpu-0, gpu-1 …, two on each NUMA node, and say whom the kubelet gave them to:
pods that are there, are not there yet, are gone or never asked for any; also two of them the same.
"""

from dataclasses import replace

from hypothesis import event as seen
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from support.clusters.builders import GPU, uid
from support.clusters.naivecluster import PODS, NaiveCluster

from muster.cluster.devices.claims import unpack
from muster.cluster.handlers.devicetroubles import TroubleKind
from muster.cluster.ids import PodUid
from muster.cluster.tables.pods import PodState

DEVICES = ("gpu-0", "gpu-1", "gpu-2", "gpu-9")  # there is no gpu-9 on any node
allocated = st.lists(st.sampled_from(DEVICES), max_size=3).map(tuple)


class NaiveDevices(NaiveCluster):
    """What must hold of devices after every step, and what nodes say of them."""

    @precondition(lambda self: any(event.devices for event in self.nodes.values()))
    @rule(data=st.data(), ill=st.sampled_from((None, None, "gpu-0", "gpu-1")))
    def node_tells_of_its_devices(self, *, data: st.DataObject, ill: str | None) -> None:
        """Of pods that are there, are not there yet, are gone or never asked for a device."""
        known = data.draw(st.sampled_from(sorted(n for n, e in self.nodes.items() if e.devices)))
        holds = {u: self.state.hold(u) for u in self.pods}
        there = sorted(u for u, hold in holds.items() if hold is not None and hold.node == known)
        anybody = st.sampled_from(PODS).map(self.uid)
        given = data.draw(
            st.dictionaries(
                st.sampled_from(there) | anybody if there else anybody, allocated, max_size=3
            )
        )
        event = replace(
            self.nodes[known],
            devices=tuple(
                replace(spec, healthy=spec.name != ill, reason="XID 79" if spec.name == ill else "")
                for spec in self.nodes[known].devices
            ),
            allocations=given,
        )
        self.nodes[known] = event
        self.apply(event)

    @invariant()
    def pods_have_the_devices_that_their_node_says_they_were_given(self) -> None:
        for name, event in self.nodes.items():
            devices = {spec.name for spec in event.devices}
            owners: dict[str, PodUid] = {}
            for u in sorted(event.allocations or {}):
                hold = self.state.hold(u)
                if hold is None or hold.node != name or u not in self.pods:
                    continue  # not here (any more), or not yet
                for device in (event.allocations or {})[u]:
                    if device in devices:  # two have it, says the node: the first by UID
                        owners.setdefault(device, u)
            for device, holder in self.holders(name).items():
                assert owners.get(device, holder) == holder
            assert owners.keys() <= self.holders(name).keys()

    @invariant()
    def bound_pods_have_the_devices_that_their_plan_names(self) -> None:
        for event in self.pods.values():
            if event.node is None or event.finished or event.plan is None:
                continue
            here = self.nodes.get(event.node)
            if here is not None and here.devices and event.uid in (here.allocations or {}):
                continue
            hold = self.state.hold(event.uid)
            assert hold is not None
            wanted = set(event.plan.devices.get(event.node, ()))
            assert set(hold.devices.get(event.node, ())) == wanted

    @invariant()
    def what_is_told_of_devices_is_so(self) -> None:
        for name, event in self.nodes.items():
            ill = {spec.name for spec in event.devices if not spec.healthy}
            for trouble in self.state.device_troubles(name):
                seen(f"trouble {trouble.kind}")
                holder = self.holders(name).get(trouble.device)
                if trouble.kind is TroubleKind.UNHEALTHY:
                    assert trouble.device in ill
                    assert holder == trouble.uid
                elif trouble.kind is TroubleKind.TAKEN:
                    assert trouble.holder == holder != trouble.uid
                    assert trouble.device in (event.allocations or {})[trouble.holder or uid("")]
                else:
                    assert trouble.uid in (event.allocations or {})
                assert trouble.bound is (self.state.pod_state(trouble.uid) is PodState.BOUND)

    def holders(self, name: str) -> dict[str, PodUid]:
        """Return who has which device of a node; all of them are had whole."""
        snapshot = self.state.snapshot()
        row, view = snapshot.nodes.row(name), snapshot.devices
        assert row is not None
        claims = unpack(view.claims[row])
        assert len({claim.device for claim in claims}) == len(claims)
        return {view.names[row][c.device]: snapshot.pods.uid(c.pod) for c in claims}

    def named(self, u: PodUid, where: str, spare: str | None) -> dict[str, tuple[str, ...]]:
        """Return as many devices as a pod asks for, the same ones for all, so often too many."""
        asked = self.pods[u].pod_class.request(GPU)
        listed = [n for n in (where, spare) if n in self.nodes and self.nodes[n].devices and asked]
        return {n: tuple(f"gpu-{k}" for k in range(asked)) for n in listed if n is not None}
