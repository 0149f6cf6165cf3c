"""The average of past use, in which use counts half as much after each half-life.

::

    used      ████████                     8 GPUs for a day, then none; the half-life is a day
              │       │
    average   ╭──────╮ 4.0
            ╭─╯      ╰──╮ 2.0
            0h      24h   48h

For use that is constant from ``a`` to ``b``, with the half-life ``h``::

    average(b) = average(a) · 2^(-(b-a)/h)  +  used · (1 - 2^(-(b-a)/h))

which is exactly (ln 2 / h) · the integral of use · 2^(-age/h) over all of the past. So it makes no
difference how an interval is divided. It is an average, and not a sum of GPU-hours: it can be
compared with what a queue is entitled to, is never more than the most that was used, and needs no
conversion where the half-life changes. The rule is that of Kueue's admission fair sharing
(KEP-4136, pkg/util/admissionfairsharing ``CalculateAlphaRate``; ``reconcileConsumedUsage`` in
pkg/controller/core/localqueue_controller.go at 0.14) and, but for the unit, of Slurm's
PriorityDecayHalfLife.
"""


def kept(elapsed: float, half_life: float) -> float:
    """Return which part of an average is left after some seconds: from 1 down to 0.

    Before its time (clocks of two replicas differ) all of it is. ``half_life``: seconds, above 0.
    """
    return float(2.0 ** (-max(elapsed, 0.0) / half_life))


def advanced(average: float, used: float, elapsed: float, half_life: float) -> float:
    """Return the average after some seconds in which ``used`` was used all the time."""
    left = kept(elapsed, half_life)
    return average * left + used * (1.0 - left)
