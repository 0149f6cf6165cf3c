"""What scoring has learned from requests, stored with the model.

A decision about a lone pod is a function of the snapshot. Learning anew for each decision would
take longer than all the rest, so the last prices are part of the state: they come with an event,
they are dumped, and a replayed decision uses the same prices. They need not survive a restart: a
new process learns them from the pods that it lists.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Learned:
    """Prices of free room (``muster.placement.scoring.prices``), and when they were learned."""

    #: Worth of a hole, in devices, by size of the hole in hundredths of a device, 0 to 100.
    worth: tuple[float, ...]
    #: Mean of the milli-CPU that using up such a hole takes, by the same size.
    cpu: tuple[float, ...]
    #: The variance of ``cpu``, by the same size.
    cpu_var: tuple[float, ...]
    #: Worth of 0, 1, 2 … devices being free on one node, beside their own worth.
    slots: tuple[float, ...]
    #: Devices lost per milli-CPU that is missing.
    stranding: float
    #: Generation of the snapshot that they were learned from.
    generation: int
    #: Free devices in that snapshot.
    free: int
