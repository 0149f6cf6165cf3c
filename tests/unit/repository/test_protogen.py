"""The kubelet's APIs as Python: what is committed is what proto/ says, and it can be used."""

import subprocess
import sys
from pathlib import Path

from muster.protogen import deviceplugin_v1beta1_pb2, pluginregistration_v1_pb2, podresources_v1_pb2

ROOT = Path(__file__).parents[3]
GENERATED = ROOT / "muster" / "protogen"


def contents(package: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in package.glob("*.py*")}


def test_the_committed_protogen_is_what_proto_gives(tmp_path: Path) -> None:
    """`make proto` writes it anew."""
    generator = [sys.executable, str(ROOT / "proto" / "generate.py"), "--to", str(tmp_path)]
    subprocess.run(generator, check=True)
    assert contents(tmp_path / "muster" / "protogen") == contents(GENERATED)


def test_the_services_are_called_as_the_kubelet_calls_them() -> None:
    modules = (deviceplugin_v1beta1_pb2, pluginregistration_v1_pb2, podresources_v1_pb2)
    services = {
        service.full_name: [method.name for method in service.methods]
        for module in modules
        for service in module.DESCRIPTOR.services_by_name.values()
    }
    assert services == {
        "v1beta1.Registration": ["Register"],
        "v1beta1.DevicePlugin": [
            "GetDevicePluginOptions",
            "ListAndWatch",
            "GetPreferredAllocation",
            "Allocate",
            "PreStartContainer",
        ],
        "pluginregistration.Registration": ["GetInfo", "NotifyRegistrationStatus"],
        "v1.PodResourcesLister": ["List", "GetAllocatableResources", "Get"],
    }


def test_a_device_has_the_bytes_that_the_kubelet_reads() -> None:
    """Field 1 "g", field 2 "Healthy", field 3 {field 1 {field 1: 1}}: the numbers of the wire."""
    device = deviceplugin_v1beta1_pb2.Device(ID="g", health="Healthy")
    device.topology.nodes.add(ID=1)
    assert device.SerializeToString() == b"\x0a\x01g\x12\x07Healthy\x1a\x04\x0a\x02\x08\x01"
