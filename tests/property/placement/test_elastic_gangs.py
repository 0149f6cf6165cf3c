"""Elastic gangs beside the gang of exactly their minimum, by seed (``support.clusters.elastic``).

``MUSTER_ELASTIC=20000 MUSTER_ELASTIC_FROM=7 pytest …`` tries that many from a seed on; the profile
``deep`` tries 20,000 from a random one. A failure names its seeds.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Final

from hypothesis import settings
from support.clusters.elastic import Elastic, random_elastic

_CASES: Final = 200
_DEEP_CASES: Final = 20_000
_DEEP_EXAMPLES: Final = 2000  # of the profile `deep`
_MOST_NAMED: Final = 10


def faults(gang: Elastic) -> Iterator[str]:
    placed = gang.placed()
    least = gang.of_minimum().placed()
    if least and not placed:
        yield f"waits, a gang of its minimum goes ({gang})"
    if placed and len(placed) < gang.minimum:
        yield f"{len(placed)} of at least {gang.minimum} are placed ({gang})"
    larger = gang.larger().placed()
    if len(larger) < len(placed) and gang.is_even:
        yield f"of more members {len(larger)} are placed, of these {len(placed)} ({gang})"
    everyone = Counter(map(gang.slice_of, range(gang.size)))
    mine = Counter(map(gang.slice_of, placed))
    first = set(map(gang.slice_of, range(gang.minimum)))
    for number, count in mine.items():
        cut = len(placed) > gang.minimum and number not in first
        if count < everyone[number] and cut:
            yield f"{count} of {everyone[number]} of slice {number} beyond the minimum ({gang})"


def test_elastic_gangs_are_placed_like_their_minimum_and_beyond_it_slice_by_slice() -> None:
    deep = settings().max_examples >= _DEEP_EXAMPLES
    count = int(os.environ.get("MUSTER_ELASTIC", _DEEP_CASES if deep else _CASES))
    asked = os.environ.get("MUSTER_ELASTIC_FROM")
    first = int(asked) if asked else random.SystemRandom().randrange(1 << 40) if deep else 0
    sys.stdout.write(f"{count} elastic gangs from seed {first}\n")
    wrong = [
        f"seed {seed}: {each}"
        for seed in range(first, first + count)
        for each in faults(random_elastic(seed))
    ]
    sys.stdout.write(f"{len(wrong)} faults\n")
    assert not wrong, "\n".join(wrong[:_MOST_NAMED])
