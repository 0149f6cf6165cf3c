"""KAI's division: quotas first, the rest by priority and weight.

::

    1  everybody gets min(demand, quota)
    2  what is left: the queues of the highest priority by weight, until they have what they can
       use; then those of the next

Source: NVIDIA/KAI-Scheduler, pkg/scheduler/plugins/proportion/resource_division at 0.6.
"""

from collections.abc import Sequence

from muster.queueing.shares.division import Claim, fill


def two_phases(total: int, claims: Sequence[Claim]) -> list[int]:
    """Divide ``total``. Quotas are given even where they add up to more, as KAI does."""
    given = [min(claim.entitled, claim.most) for claim in claims]
    left = max(0, total - sum(given))
    for priority in sorted({claim.priority for claim in claims}, reverse=True):
        band = [i for i, claim in enumerate(claims) if claim.priority == priority]
        wants = [claims[i].most - given[i] for i in band]
        parts = fill(left, wants, [claims[i].weight for i in band])
        for i, part in zip(band, parts, strict=True):
            given[i] += part
        left -= sum(parts)
    return given
