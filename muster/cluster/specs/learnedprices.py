"""What scoring has learned of the requests, kept with the model.

A decision about a pod that comes alone is a function of the snapshot. Learning anew for each
would take longer than all the rest, so what was learned last is part of the state: it comes
with an event, it is dumped, and a decision that is asked again finds what the first one found.
It is no truth that must survive: after a restart it is learned from the pods that are listed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Learned:
    """Prices of free room (``muster.placement.scoring.prices``), and when they were learned."""

    #: In devices: of a hole, by hundredths of a device, 0 to 100.
    worth: tuple[float, ...]
    #: In milli-CPU, by the same.
    cpu: tuple[float, ...]
    #: The variance of ``cpu``, by the same.
    cpu_var: tuple[float, ...]
    #: Worth of 0, 1, 2 … devices free together.
    slots: tuple[float, ...]
    #: Devices per milli-CPU.
    stranding: float
    #: The snapshot's that they were learned from.
    generation: int
    #: Free devices in that snapshot.
    free: int
