"""Counters are brought up to date when somebody looks, whatever happened in between."""

from collections import Counter as Expected

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter

from webhook.metrics import KEPT, Tally

Answer = tuple[int, ...]
ANSWERS = [(number % 7, 1 + number % 3) for number in range(3 * KEPT)]


@given(st.lists(st.sampled_from(range(len(ANSWERS))) | st.none(), max_size=6 * KEPT))
def test_every_answer_given_is_counted_once_however_often_one_looks(
    steps: list[int | None],
) -> None:
    registry = CollectorRegistry()
    tally = Tally[Answer](registry, lambda answer: [(counters[answer[0]], answer[1])])
    counters = [Counter(f"c{number}", "c", registry=registry) for number in range(7)]
    expected = Expected[int]()

    def shown() -> list[float | None]:
        return [registry.get_sample_value(f"c{number}_total") for number in range(7)]

    for step in steps:
        if step is None:
            assert shown() == [expected[number] for number in range(7)]
            continue
        tally.add(ANSWERS[step])
        tally.count(counters[0])
        number, amount = ANSWERS[step]
        expected[number] += amount
        expected[0] += 1
    assert shown() == [expected[number] for number in range(7)]
