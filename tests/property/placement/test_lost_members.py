"""Lost members beside every way to seat them (``support.clusters.seatings``), by seed.

``MUSTER_REPAIRS=100000 MUSTER_REPAIRS_FROM=7 pytest …`` tries that many gangs from a seed on; the
profile ``deep`` tries 100,000 from a random one. A failure names its seeds.
"""

import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import settings
from support.clusters.seatings import (
    Case,
    built,
    counted_twice,
    elastic,
    faults,
    is_small,
    random_case,
)

from muster.placement.search import joint

_CASES: Final = 300
_DEEP_CASES: Final = 100_000
_DEEP_EXAMPLES: Final = 2000  # of the profile `deep`
_MOST_NAMED: Final = 10


def asked() -> tuple[int, int]:
    """Return the first seed and how many there are."""
    deep = settings().max_examples >= _DEEP_EXAMPLES
    count = int(os.environ.get("MUSTER_REPAIRS", _DEEP_CASES if deep else _CASES))
    first = os.environ.get("MUSTER_REPAIRS_FROM")
    return int(first) if first else random.SystemRandom().randrange(1 << 40) if deep else 0, count


#: How a case differs from one of a gang whose members are all needed and numbered.
VARIANTS: Final[dict[str, Callable[[Case, int], Case]]] = {
    "of all": lambda case, _: case,
    "above the minimum": elastic,
    "of numbers that come twice": counted_twice,
}


def trial(seed: int, variant: str = "of all") -> tuple[str, list[str]]:
    """Return the kind of the answer, and what is wrong with it."""
    case = VARIANTS[variant](random_case(seed), seed)
    if not is_small(case):
        return "too large", []
    scene, key = built(case)
    try:
        found = scene.ask(key)
    except AssertionError as error:  # what the oracle of plans says
        return "unsound", [str(error)]
    return type(found).__name__, faults(case, found, scene)


@pytest.mark.parametrize("variant", VARIANTS)
def test_lost_members_go_where_no_seating_opens_fewer_domains_and_wait_only_where_none_is(
    variant: str,
) -> None:
    first, count = asked()
    sys.stdout.write(f"{count} repairs from seed {first}\n")
    answers: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(first, first + count):
        kind, found = trial(seed, variant)
        answers[kind] += 1
        wrong += [f"seed {seed}: {'; '.join(found)}"] if found else []
    sys.stdout.write(f"{dict(answers)}, {len(wrong)} faults\n")
    assert not wrong, "\n".join(wrong[:_MOST_NAMED])
    assert min(answers["Plan"], answers["Wait"]) > count // 50


def test_no_rule_is_broken_where_the_exact_search_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is found slice by slice may open a domain more, or find nothing; it is never wrong."""
    monkeypatch.setattr(joint, "MOST_HOSTS", 0)
    wrong = {seed: trial(seed)[1] for seed in range(_CASES)}
    allowed = ("new domains", "waits (")
    assert not {
        s: found for s, found in wrong.items() if found and not found[0].startswith(allowed)
    }
    assert sum(map(bool, wrong.values())) < _CASES // 20
