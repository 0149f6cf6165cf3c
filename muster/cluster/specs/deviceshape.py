"""What a device is: everything but its name, and what is used of it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG profile and where it can stand.

    ``masks``: (start, bits) pairs; the bits are memory slices of the GPU, the lowest is
    slice 0, and instances whose bits overlap cannot stand together. A bit above the slices
    marks something else there is one of (the media engines of a ``+me`` profile).
    """

    name: str
    masks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class DeviceShape:
    """What all devices of a kind share.

    ``family``: the vendor's line of devices that fractional asks speak of ("nvidia").
    ``counters``: sorted (name, amount) pairs of what can be shared out of it: "memory" in
    MiB, "replicas". ``by_memory``: its replicas are divided by memory, so that one for which
    none is named takes all. ``placements``: MIG profiles it can be cut into, if it is.
    """

    resource: str
    driver: str = ""
    pool: str = ""
    kind: str = ""
    numa: int = -1
    parent: str = ""
    counters: tuple[tuple[str, int], ...] = ()
    family: str = ""
    model: str = ""
    tier: str = ""
    by_memory: bool = False
    placements: tuple[MigProfile, ...] = ()
    memory: int = field(init=False, repr=False, compare=False)
    units: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Look up the counters that are asked for all the time."""
        counters = dict(self.counters)
        object.__setattr__(self, "memory", counters.get("memory", 0))
        object.__setattr__(self, "units", max(counters.get("replicas", 1), 1))
