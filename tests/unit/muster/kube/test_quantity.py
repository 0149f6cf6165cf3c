from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.quantity import QuantityError, parse, to_milli, to_nanos, to_units


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1", 1),
        ("+7", 7),
        ("-3", -3),
        ("0007", 7),
        ("100m", Fraction(1, 10)),
        ("1.", 1),
        (".5", Fraction(1, 2)),
        ("1.5Gi", 3 << 29),
        ("0.5Ki", 512),
        ("80Gi", 80 << 30),
        ("8Ei", 8 << 60),
        ("1E", 10**18),
        ("1E3", 1000),
        ("1e3", 1000),
        ("12e-1", Fraction(12, 10)),
        ("5k", 5000),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        (4, 4),
        (0.1, Fraction(1, 10)),
        (1e21, 10**21),
    ],
)
def test_a_quantity_has_its_exact_value(text: str | float, value: Fraction | int) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "milli", "units"),
    [
        ("1", 1000, 1),
        ("100m", 100, 1),
        ("0.5m", 1, 1),
        ("1n", 1, 1),
        ("1500m", 1500, 2),
        ("-1500m", -1500, -2),
        ("0", 0, 0),
        ("1.0001", 1001, 2),
    ],
)
def test_milli_and_units_are_rounded_up(text: str, milli: int, units: int) -> None:
    assert (to_milli(text), to_units(text)) == (milli, units)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "1 ", " 1", "m", ".", "+", "1KiB", "1ki", "1K", "1mm", "1e", "1Ee", "0x10",
        "\u0661", "1e1000", "1,5", "1.2.3", "--1", "1_000", "NaN", "inf", "9" * 41, "1Ki3",
    ],
)  # fmt: skip
def test_a_malformed_quantity_is_refused_by_name(text: str) -> None:
    with pytest.raises(QuantityError, match="quantity"):
        parse(text)


@pytest.mark.parametrize("value", [True, float("nan"), float("inf")])
def test_json_values_that_are_no_numbers_are_refused(value: float) -> None:
    with pytest.raises(QuantityError):
        to_units(value)


def test_a_result_beyond_63_bits_is_refused_and_not_wrapped() -> None:
    assert to_units("9223372036854775807") == 2**63 - 1
    with pytest.raises(QuantityError, match="'9223372036854775808' is out of range"):
        to_units("9223372036854775808")
    with pytest.raises(QuantityError, match="out of range"):
        to_milli("9223372036854775807")
    with pytest.raises(QuantityError, match="out of range"):
        to_units("1e99")


def test_the_message_shows_only_the_start_of_hostile_input() -> None:
    with pytest.raises(QuantityError) as caught:
        parse("x" * 100_000)
    assert len(str(caught.value)) < 300


@given(st.integers(-(10**30), 10**30), st.integers(0, 9))
def test_decimal_text_is_read_back_exactly(unscaled: int, decimals: int) -> None:
    digits = f"{abs(unscaled):0{decimals + 1}d}"
    whole, part = digits[: len(digits) - decimals], digits[len(digits) - decimals :]
    text = f"{'-' if unscaled < 0 else ''}{whole}.{part}"
    assert parse(text) == Fraction(unscaled, 10**decimals)


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP", max_size=12))
def test_reading_never_fails_in_another_way(text: str) -> None:
    try:
        nanos = to_nanos(text)
    except QuantityError:
        return
    assert isinstance(nanos, int)
