"""Whatever devices and pods are called, the text that is served means just that."""

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from deviceplugin.exporter.text import family, labels

NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), include_characters='\n"\\{},='),
    min_size=1,
)
NUMBERS = st.one_of(
    st.integers(0, 2**53), st.floats(0, 1e15, allow_nan=False, allow_subnormal=False)
)


@given(st.lists(st.tuples(NAMES, NUMBERS), max_size=5, unique_by=lambda each: each[0]))
def test_names_and_values_come_back_as_they_were(samples: list[tuple[str, float]]) -> None:
    lines = family("m", "gauge", "Help.", ((labels({"of": name}), n) for name, n in samples))
    text = "".join(f"{line}\n" for line in lines)
    found = [each for metric in text_string_to_metric_families(text) for each in metric.samples]
    assert [each.labels for each in found] == [{"of": name} for name, _ in samples]
    for each, (_, value) in zip(found, samples, strict=True):
        assert math.isclose(each.value, value, rel_tol=1e-5, abs_tol=1e-9)
    assert bool(lines) == bool(samples)
