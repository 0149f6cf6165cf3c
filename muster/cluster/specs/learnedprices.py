"""What scoring has learned of the requests, kept with the model.

A decision about a pod that comes alone is a function of the snapshot. Learning anew for each
would take longer than all the rest, so what was learned last is part of the state: it comes
with an event, it is dumped, and a decision that is asked again finds what the first one found.
It is no truth that must survive: after a restart it is learned from the pods that are listed.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Learned:
    """Prices of free room, as ``placement.scoring.prices`` has them, and when they were learned.

    ``worth`` (devices), ``cpu`` (milli-CPU), ``cpu_var``: of a hole, by hundredths of a device,
    0 to 100. ``slots``: worth of 0, 1, 2 … devices free together. ``stranding``: devices per
    milli-CPU. ``generation`` of the snapshot, and ``free`` devices in it.
    """

    worth: tuple[float, ...]
    cpu: tuple[float, ...]
    cpu_var: tuple[float, ...]
    slots: tuple[float, ...]
    stranding: float
    generation: int
    free: int
