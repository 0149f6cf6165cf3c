"""Volcano's proportion: by weight, nobody more than it asks for, nobody less than its guarantee.

::

    guarantees, as far as they are asked for  ─►  the rest by weight, until everybody has enough
    what somebody does not ask for goes to the others, by weight again

Source: volcano-sh/volcano, pkg/scheduler/plugins/proportion/proportion.go at 1.10. A guarantee
counts in the part by weight: a queue gets the larger of the two.
"""

from collections.abc import Sequence

from muster.queueing.shares.division import Claim, fill


def waterfilling(total: int, claims: Sequence[Claim]) -> list[int]:
    """Divide ``total``; each gets at least what it is entitled to, as far as it asks for it."""
    floors = [min(claim.entitled, claim.most) for claim in claims]
    fixed: set[int] = set()
    while True:
        free = [i for i in range(len(claims)) if i not in fixed]
        left = max(0, total - sum(floors[i] for i in fixed))
        parts = fill(left, [claims[i].most for i in free], [claims[i].weight for i in free])
        below = [i for i, part in zip(free, parts, strict=True) if part < floors[i]]
        if not below:
            given = list(floors)
            for i, part in zip(free, parts, strict=True):
                given[i] = part
            return given
        fixed.update(below)
