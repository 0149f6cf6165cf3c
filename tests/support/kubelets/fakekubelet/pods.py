"""Pods as the fake kubelet is given them, and what became of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.protogen import deviceplugin_v1beta1_pb2 as pb


@dataclass(frozen=True)
class Container:
    """``restartable``: an init container that stays, a side-car."""

    name: str
    limits: Mapping[str, int] = field(default_factory=dict)
    restartable: bool = False


@dataclass(frozen=True)
class Pod:
    """``created``: creationTimestamp in seconds, the order of admission."""

    name: str
    containers: tuple[Container, ...]
    init: tuple[Container, ...] = ()
    namespace: str = "default"
    uid: str = ""
    created: float = 0.0

    @property
    def id(self) -> str:
        """Return the UID; the name where none was given."""
        return self.uid or self.name


def asking(name: str, limits: Mapping[str, int], *, created: float = 0.0, uid: str = "") -> Pod:
    """Return a pod of one container, "main"."""
    return Pod(name, (Container("main", limits),), created=created, uid=uid)


class AdmissionError(Exception):
    """The pod is Failed with reason UnexpectedAdmissionError or TopologyAffinityError."""


class StartError(Exception):
    """A container could not be started; the kubelet tries again."""


@dataclass(frozen=True)
class Given:
    """What a container was given of one resource."""

    #: NUMA node (-1: none) → ids.
    numa: Mapping[int, tuple[str, ...]]
    response: pb.ContainerAllocateResponse

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(each for ids in self.numa.values() for each in ids)


@dataclass(frozen=True)
class RunOptions:
    """What a container is run with: the answers for all of its resources, the first one wins."""

    envs: dict[str, str]
    mounts: dict[str, str]  # container path → host path
    files: dict[str, str]  # container path → host path
    annotations: dict[str, str]
    cdi: tuple[str, ...]


def merged(answers: Mapping[str, Given]) -> RunOptions:
    """Return the run options of a container (pod_devices.go, deviceRunContainerOptions)."""
    options = RunOptions({}, {}, {}, {}, ())
    cdi: dict[str, None] = {}
    for given in answers.values():
        response = given.response
        for key, value in response.envs.items():
            options.envs.setdefault(key, value)
        for mount in response.mounts:
            options.mounts.setdefault(mount.container_path, mount.host_path)
        for file in response.devices:
            options.files.setdefault(file.container_path, file.host_path)
        for key, value in response.annotations.items():
            options.annotations.setdefault(key, value)
        cdi.update(dict.fromkeys(device.name for device in response.cdi_devices))
    return RunOptions(options.envs, options.mounts, options.files, options.annotations, tuple(cdi))
