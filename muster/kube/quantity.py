"""Kubernetes quantities, read exactly.

A quantity is a signed decimal number with a suffix: binary (``Ki`` … ``Ei``), decimal
(``n u m k M G T P E``, or none) or an exponent (``e3``, ``E-2``). ``1E`` is one exa and
``1E3`` one thousand. The grammar and the rounding are those of apimachinery's
``resource.ParseQuantity``: anything finer than a nano is rounded up, away from zero, so
whoever asks for a little gets a little.

Floating point never touches a value; results beyond int64 are errors, not wrapped.
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

NANOS: Final = 10**9  # the finest step of a quantity is one billionth
CPU: Final = "cpu"
_MILLI: Final = NANOS // 1000
INT64_MAX: Final = 2**63 - 1
_SHORT: Final = 24  # characters of a quantity worth remembering
_SAFE_DIGITS: Final = 18  # decimal digits that always fit int64

# The exponent is bounded so that "1e999999999" cannot ask for a number of a billion digits.
_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]{0,40})(?:\.(?P<part>[0-9]{0,40}))?"
    r"(?P<suffix>Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?|[eE](?P<exponent>[+-]?[0-9]{1,3}))"
)
_DIGITS: Final = re.compile("[0-9]+")
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip


class QuantityError(ValueError):
    """A quantity that cannot be read, or one that does not fit; the message names it."""


def parse(value: str | float) -> Fraction:
    """Return the exact value in base units, a multiple of one nano.

    Raises ``QuantityError`` when ``value`` is no quantity.
    """
    return Fraction(to_nanos(value), NANOS)


def to_milli(value: str | float) -> int:
    """Return thousandths, rounded up as ``Quantity.MilliValue`` does; fits int64."""
    return round_up(to_nanos(value), NANOS // 1000, value)


def to_units(value: str | float) -> int:
    """Return whole units, rounded up as ``Quantity.Value`` does; fits int64."""
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) <= _SAFE_DIGITS
    ):
        return int(value)  # by far the most frequent form
    return round_up(to_nanos(value), NANOS, value)


def to_nanos(value: str | float) -> int:
    """Return billionths as an integer of any size; the form in which sums stay exact."""
    text = value if isinstance(value, str) else _literal(value)
    return _remembered(text) if len(text) <= _SHORT else _nanos(text)


def _nanos(text: str) -> int:
    found = _GRAMMAR.fullmatch(text)
    if found is None or not (found["whole"] or found["part"]):
        raise QuantityError(
            f"quantity {_shown(text)} cannot be read: write a decimal number with one of the "
            'suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent, as in "500m" or "80Gi"'
        )
    part = found["part"] or ""
    digits = int(found["whole"] + part)
    numerator, denominator = _scale(found["suffix"], found["exponent"], len(part))
    nanos = -(-digits * numerator * NANOS // denominator)
    return -nanos if found["sign"] == "-" else nanos


# Pods of a cluster ask for the same few amounts; long texts are not remembered.
_remembered: Final = lru_cache(maxsize=1024)(_nanos)


def round_up(nanos: int, step: int, value: object) -> int:
    """Return ``nanos / step`` rounded up, away from zero; ``value`` is named in the error."""
    result = -(-nanos // step) if nanos >= 0 else nanos // step
    if abs(result) > INT64_MAX:
        raise QuantityError(f"quantity {_shown(str(value))} is out of range: 63 bits are the limit")
    return result


def rounded_amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Return amounts in the units that the model counts their resources in, rounded up.

    CPU is counted in milli, all else in whole units. Raises ``QuantityError``.
    """
    return {resource: _rounded(resource, amount) for resource, amount in nanos.items()}


def _rounded(resource: str, nanos: int) -> int:
    try:
        return round_up(nanos, _MILLI if resource == CPU else NANOS, f"{nanos}n")
    except QuantityError as error:
        raise QuantityError(f"{resource}: {error}") from None


def _scale(suffix: str, exponent: str | None, decimals: int) -> tuple[int, int]:
    """Return the factor of a suffix as numerator and denominator, decimals folded in."""
    if suffix in _BINARY:
        return 1 << _BINARY[suffix], 10**decimals
    power = (int(exponent) if exponent is not None else _DECIMAL[suffix]) - decimals
    return (10**power, 1) if power >= 0 else (1, 10**-power)


def _literal(value: float) -> str:
    """Return a JSON number as text; booleans and NaN end up as text that is refused."""
    return repr(value)


def _shown(text: str) -> str:
    """Return ``text`` quoted and cut, for messages: hostile input may be megabytes."""
    limit = 40
    return repr(text if len(text) <= limit else text[:limit] + "…")
