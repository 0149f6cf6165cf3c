"""Whose health the Node speaks of."""

from dataclasses import replace
from pathlib import Path

from support.devices.gpunodes import gpu, nic, node

from deviceplugin.allocation.answers import ContainerAnswers
from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.containers import Containers
from deviceplugin.handshake.handshake import Handshake
from deviceplugin.handshake.podresources import PodResources
from deviceplugin.health.config import HealthConfig
from deviceplugin.model.inventory import Port
from deviceplugin.model.signals import NicReading
from deviceplugin.node import NodeState
from deviceplugin.publication.nodecontent import PublicationSettings, node_content
from deviceplugin.resources.settings import NicPool, ResourceSettings, Selectors

DARK = replace(nic(1, 0), ports=(Port(1, active=False, link_layer="InfiniBand"),))
TWO = node(gpu(0), nics=(nic(0, 0), DARK))


def state(*names: str) -> NodeState:
    """Return a node whose second NIC has no cable, with the named NICs in a pool."""
    pools = (NicPool("hca", selectors=Selectors(names=names)),) if names else ()
    given = Containers(ContainerAnswers(AllocationSettings()), None, files=False)
    giver = Handshake("n1", given, PodResources(Path("/nowhere")), follows=False)
    made = NodeState(ResourceSettings(rdma=pools), HealthConfig(), giver)
    made.see(TWO, 0.0)
    made.read([NicReading("mlx5_1", ((1, False),))], 1.0)
    return made


def test_a_nic_without_a_cable_that_nobody_is_offered_makes_no_node_sick() -> None:
    made = state("mlx5_0")
    _, condition = node_content(made.known(""), PublicationSettings())
    assert condition.healthy
    assert [one.device for one in made.standings()] == ["GPU-00000000", "mlx5_0"]


def test_a_nic_that_pods_are_offered_does() -> None:
    made = state("mlx5_0", "mlx5_1")
    _, condition = node_content(made.known(""), PublicationSettings())
    assert condition.healthy is False
    assert "mlx5_1" in condition.message
