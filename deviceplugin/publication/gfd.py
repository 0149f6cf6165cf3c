"""Labels of a node's GPUs, key for key as NVIDIA's GPU feature discovery writes them.

Source of every rule: NVIDIA/k8s-device-plugin docs/gpu-feature-discovery/README.md and
internal/lm/{nvml,resource,mig-strategy,machine-type,imex,timestamp}.go.

Where this differs, on purpose:

* A node with several models: upstream writes the labels of whichever comes last. Here
  ``nvidia.com/gpu.*`` speak of the model there are most of (the first by name of as many), and
  ``gpu-model.muster.dev/<product>: <count>`` is written for each model.
* ``nvidia.com/gpu.clique`` is left out for Hopper GPUs that are not on a Grace board: an H100
  says COMPLETED without being in an NVLink domain that spans nodes (meta-pytorch/torchcomms#1315).
* Fabric ids that are all zeros are none.
* Sharing is that of the devices which the labels speak of, since a rule may share some of a node's.
* ``nvidia.com/gfd.timestamp`` is the time of the last change, so that nothing is written when
  nothing has changed.
* ``nvidia.com/gpu.imex-domain`` is not written.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from deviceplugin.model.inventory import FabricState, Gpu, Inventory, MigInstance, Vendor
from deviceplugin.publication.labelvalue import sanitised

PREFIX: Final = "nvidia.com/"
GPU: Final = PREFIX + "gpu"
MODELS: Final = "gpu-model.muster.dev/"
TIMESTAMP: Final = PREFIX + "gfd.timestamp"
UNKNOWN: Final = "unknown"

MigStrategy = Literal["none", "single", "mixed"]
SharingKind = Literal["none", "time-slicing", "mps"]

_MODES: Final = {"0x030000": "graphics", "0x030200": "compute"}
_ENGINES: Final = ("copy", "decoder", "encoder", "jpeg", "ofa")
_SLICES: Final = re.compile(r"(?:\d+c\.)?(\d+)g\.")
_HOPPER: Final = 9
_ZEROS: Final = frozenset("0-")
# Compute capability, the first that is not above a GPU's → family (internal/lm/resource.go).
_FAMILIES: Final = (
    ((14, 0), "undefined"), ((13, 0), "rubin"), ((10, 0), "blackwell"), ((9, 0), "hopper"),
    ((8, 9), "ada-lovelace"), ((8, 0), "ampere"), ((7, 5), "turing"), ((7, 0), "volta"),
    ((6, 0), "pascal"), ((5, 0), "maxwell"), ((3, 0), "kepler"), ((2, 0), "fermi"),
    ((1, 0), "tesla"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SharedDevice:
    """How one GPU or MIG instance is shared: its ``replicas``, and the resource they are under."""

    replicas: int
    resource: str


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """What labels say beside the inventory: MIG strategy, and which devices are shared."""

    strategy: MigStrategy = "none"
    kind: SharingKind = "none"
    #: UUIDs of GPUs and MIG instances that are shown as replicas → how
    shared: Mapping[str, SharedDevice] = field(default_factory=lambda: MappingProxyType({}))


def labels(inventory: Inventory, offer: LabelFacts) -> dict[str, str]:
    """Return the labels of a node, without the timestamp; none where it has no NVIDIA GPU."""
    gpus = tuple(gpu for gpu in inventory.gpus if gpu.vendor is Vendor.NVIDIA)
    if not gpus:
        return {}
    return {
        PREFIX + "gpu.machine": sanitised(inventory.machine) or UNKNOWN,
        PREFIX + "gpu.mode": _mode(gpus),
        PREFIX + "mig.capable": _flag(any(gpu.mig is not None for gpu in gpus)),
        PREFIX + "mps.capable": _flag(offer.kind == "mps" and not any(map(_is_cut, gpus))),
        **_versions(inventory),
        **_clique(gpus),
        **_vgpu(gpus),
        **_whole(gpus, offer),
        **_mig(gpus, offer),
        **_models(gpus),
    }


def product(gpu: Gpu) -> str:
    """Return a GPU's model as its label says it."""
    return sanitised(gpu.model)


def _flag(value: bool) -> str:  # noqa: FBT001  what it writes is the value
    return "true" if value else "false"


def _is_cut(gpu: Gpu) -> bool:
    return gpu.mig is not None and gpu.mig.enabled


def _mode(gpus: Sequence[Gpu]) -> str:
    classes = {gpu.pci_class for gpu in gpus}
    return _MODES.get(classes.pop(), UNKNOWN) if len(classes) == 1 else UNKNOWN


# --- versions -----------------------------------------------------------------------------


def _versions(inventory: Inventory) -> dict[str, str]:
    """Return both spellings, the deprecated one too: workloads in the field select by either."""
    driver, cuda = inventory.driver.version, inventory.driver.cuda
    found: dict[str, str] = {}
    if driver:
        major, minor, revision = _parts(driver, 3)
        found |= {
            PREFIX + "cuda.driver.major": major,
            PREFIX + "cuda.driver.minor": minor,
            PREFIX + "cuda.driver.rev": revision,
            PREFIX + "cuda.driver-version.major": major,
            PREFIX + "cuda.driver-version.minor": minor,
            PREFIX + "cuda.driver-version.revision": revision,
            PREFIX + "cuda.driver-version.full": driver,
        }
    if cuda:
        major, minor = _parts(cuda, 2)
        found |= {
            PREFIX + "cuda.runtime.major": major,
            PREFIX + "cuda.runtime.minor": minor,
            PREFIX + "cuda.runtime-version.major": major,
            PREFIX + "cuda.runtime-version.minor": minor,
            PREFIX + "cuda.runtime-version.full": cuda,
        }
    return found


def _parts(version: str, count: int) -> list[str]:
    given = version.split(".", count - 1)
    return given + [""] * (count - len(given))


# --- NVLink domain ------------------------------------------------------------------------


def clique(gpus: Iterable[Gpu]) -> str:
    """Return the NVLink domain that all of these GPUs are in, "" where they are in none."""
    found = {_domain(gpu) for gpu in gpus}
    return found.pop() if len(found) == 1 else ""


def _domain(gpu: Gpu) -> str:
    fabric = gpu.fabric
    lonely = gpu.compute[0] == _HOPPER and "GH200" not in gpu.model
    told = fabric.state is FabricState.COMPLETED and not set(fabric.cluster) <= _ZEROS
    return f"{fabric.cluster}.{fabric.clique}" if told and not lonely else ""


def _clique(gpus: Sequence[Gpu]) -> dict[str, str]:
    domain = clique(gpus)
    return {PREFIX + "gpu.clique": domain} if domain else {}


# --- vGPUs --------------------------------------------------------------------------------


def _vgpu(gpus: Iterable[Gpu]) -> dict[str, str]:
    """Return the labels of a node with vGPUs; the last one's host counts, as upstream has it."""
    hosts = [gpu.vgpu for gpu in gpus if gpu.vgpu is not None]
    if not hosts:
        return {}
    named = {"version": hosts[-1].version, "branch": hosts[-1].branch}
    return {PREFIX + "vgpu.present": "true"} | {
        f"{PREFIX}vgpu.host-driver-{key}": sanitised(value) for key, value in named.items() if value
    }


# --- whole GPUs ---------------------------------------------------------------------------


def _whole(gpus: Sequence[Gpu], offer: LabelFacts) -> dict[str, str]:
    counts = Counter(map(product, gpus))
    name, count = min(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    alike = [gpu for gpu in gpus if product(gpu) == name]
    # Upstream: the labels of a full GPU win over those of an equal one that is cut.
    cut = all(map(_is_cut, alike))
    gpu = next((gpu for gpu in alike if not _is_cut(gpu)), alike[0])
    return {
        **_shared(GPU, offer, (gpu.model,), count, () if cut else _uuids(alike)),
        **({f"{GPU}.memory": str(gpu.memory_mib)} if gpu.memory_mib else {}),
        **_architecture(gpu),
    }


def _uuids(gpus: Iterable[Gpu]) -> tuple[str, ...]:
    """Return the GPUs that are not cut."""
    return tuple(gpu.uuid for gpu in gpus if not _is_cut(gpu))


def _shared(
    resource: str, offer: LabelFacts, parts: tuple[str, ...], count: int, devices: Sequence[str]
) -> dict[str, str]:
    """Return product, count, replicas and strategy.

    ``devices``: UUIDs of what the labels speak of; none where GPUs are cut, which share nothing
    whole. A rule may share some devices only (upstream shares all or none). The labels promise what
    each of them has: they say shared where all are, with the fewest replicas of any.
    """
    shared = [offer.shared[uuid] for uuid in devices if uuid in offer.shared]
    all_shared = 0 < len(shared) == len(devices)
    replicas = min(each.replicas for each in shared) if all_shared else min(1, len(devices))
    words = [sanitised(part) for part in parts]
    if replicas > 1 and any(each.resource == resource for each in shared):
        words.append("SHARED")
    return {
        f"{resource}.product": "-".join(words),
        f"{resource}.count": str(count),
        f"{resource}.replicas": str(replicas),
        f"{resource}.sharing-strategy": offer.kind if replicas > 1 else "none",
    }


def _architecture(gpu: Gpu) -> dict[str, str]:
    major, minor = gpu.compute
    if not major:
        return {}
    family = next(name for least, name in _FAMILIES if gpu.compute >= least)
    return {
        f"{GPU}.family": family,
        f"{GPU}.compute.major": str(major),
        f"{GPU}.compute.minor": str(minor),
    }


def _models(gpus: Sequence[Gpu]) -> dict[str, str]:
    counts = Counter(map(product, gpus))
    return {MODELS + name: str(count) for name, count in counts.items() if name}


# --- MIG ----------------------------------------------------------------------------------


def _mig(gpus: Sequence[Gpu], offer: LabelFacts) -> dict[str, str]:
    if offer.strategy == "none":
        return {}
    found = {PREFIX + "mig.strategy": offer.strategy}
    cut = [gpu for gpu in gpus if _is_cut(gpu)]
    if offer.strategy == "mixed":
        return found | _mixed(cut, offer)
    return found | (_single(gpus, cut, offer) if cut else {})


def _mixed(cut: Sequence[Gpu], offer: LabelFacts) -> dict[str, str]:
    found: dict[str, str] = {}
    for profile, (gpu, instances) in _profiles(cut).items():
        resource = f"{PREFIX}mig-{profile.replace('+', '.')}"
        found |= _instances(resource, offer, gpu, instances)
    return found


def _single(gpus: Sequence[Gpu], cut: Sequence[Gpu], offer: LabelFacts) -> dict[str, str]:
    """Return the labels of the one profile there is, or those that say it is not so."""
    profiles = _profiles(cut)
    empty = any(gpu.mig is not None and not gpu.mig.instances for gpu in cut)
    if empty or len(cut) < len(gpus) or len(profiles) != 1:
        invalid = f"{product(cut[0])}-MIG-INVALID"
        return {f"{GPU}.product": invalid, f"{GPU}.sharing-strategy": ""} | {
            f"{GPU}.{key}": "0" for key in ("count", "replicas", "memory")
        }
    gpu, instances = next(iter(profiles.values()))
    return _instances(GPU, offer, gpu, instances)


def _profiles(cut: Iterable[Gpu]) -> dict[str, tuple[Gpu, list[MigInstance]]]:
    """Return the instances by profile, with the GPU of the first one."""
    found: dict[str, tuple[Gpu, list[MigInstance]]] = {}
    for gpu in cut:
        for instance in gpu.mig.instances if gpu.mig else ():
            found.setdefault(instance.profile, (gpu, []))[1].append(instance)
    return found


def _instances(
    resource: str, offer: LabelFacts, gpu: Gpu, instances: Sequence[MigInstance]
) -> dict[str, str]:
    instance = instances[0]
    profile = instance.profile.replace("+", ".")
    slices = _SLICES.match(profile)
    of_gpu = slices[1] if slices else str(instance.compute_slices)
    return {
        **_shared(
            resource,
            offer,
            (gpu.model, "MIG", profile),
            len(instances),
            [each.uuid for each in instances],
        ),
        f"{resource}.memory": str(instance.memory_mib),
        f"{resource}.multiprocessors": str(instance.multiprocessors),
        f"{resource}.slices.gi": of_gpu,
        f"{resource}.slices.ci": str(instance.compute_slices),
        **{f"{resource}.engines.{name}": str(instance.engines.get(name, 0)) for name in _ENGINES},
    }
