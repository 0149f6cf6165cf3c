"""The bounds as data: what a file says, read strictly, every wrong value named.

::

    file ──► YAML ──► msgspec (types, unknown fields) ──► rules between fields ──► bounds
                          └── BoundsError: file, field, value, what is allowed

A bound has to lie between two marks, or it is no bound: above every value that was seen while
nothing was wrong, and below twice the recorded one, so that a ratio that doubles is found.

::

    0 ────── seen low ── recorded ── seen high ──┤ bound ├── twice recorded ──►
"""

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import msgspec
import yaml

DEFAULT: Final = Path(__file__).with_name("bounds.yaml")


class BoundsError(Exception):
    """Bounds that cannot be used; the message names file, field and value."""


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every part of the file has in common."""


class Bound(_Strict, frozen=True):
    """One ratio: ``of`` divided by ``over``, both in ``unit``."""

    name: str
    of: str
    over: str
    unit: str
    bound: float
    #: The median when the bound was set.
    recorded: float
    #: Least and most of ``runs`` runs at that time.
    seen: tuple[float, float]
    runs: int
    #: What to look at first when the bound is missed.
    look: str


class _File(_Strict, frozen=True):
    ratios: tuple[Bound, ...]


def load(path: Path | None, known: Collection[str]) -> tuple[Bound, ...]:
    """Read a file of bounds, by default the one that is shipped; raises ``BoundsError``.

    ``known``: the names of what can be measured; a file may leave some of it out.
    """
    file = path or DEFAULT
    try:
        read = msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), _File)
    except OSError as error:
        raise BoundsError(f"{file}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BoundsError(f"{file}: not YAML: {error}") from error
    except msgspec.ValidationError as error:
        raise BoundsError(f"{file}: {error}") from error
    problems = list(_problems(read.ratios, known))
    if problems:
        raise BoundsError("\n".join(f"{file}: {problem}" for problem in problems))
    return read.ratios


def _problems(bounds: tuple[Bound, ...], known: Collection[str]) -> Iterator[str]:
    """Yield what is wrong between fields, one sentence each."""
    if not bounds:
        yield "ratios: none: give at least one"
    seen: set[str] = set()
    for index, each in enumerate(bounds):
        at = f"ratios[{index}]"
        if each.name not in known:
            yield f"{at}.name: {each.name!r} is not measured: there are {', '.join(known)}"
        if each.name in seen:
            yield f"{at}.name: {each.name!r}: is there twice"
        seen.add(each.name)
        yield from _text_problems(at, each)
        yield from _number_problems(at, each)


def _text_problems(at: str, each: Bound) -> Iterator[str]:
    texts = {"of": each.of, "over": each.over, "unit": each.unit, "look": each.look}
    for field, text in texts.items():
        if not text.strip():
            yield f"{at}.{field}: {text!r}: say it in words"
    if each.runs < 1:
        yield f"{at}.runs: {each.runs}: give at least 1"


def _number_problems(at: str, each: Bound) -> Iterator[str]:
    low, high = each.seen
    numbers = {"bound": each.bound, "recorded": each.recorded, "seen": low, "seen[1]": high}
    wrong = {field: n for field, n in numbers.items() if not (math.isfinite(n) and n > 0)}
    for field, number in wrong.items():
        yield f"{at}.{field}: {number}: a ratio is a number above 0"
    if wrong:
        return
    if not low <= each.recorded <= high:
        yield f"{at}.recorded: {each.recorded}: not in the range that was seen, {low} to {high}"
    if each.bound <= high:
        yield f"{at}.bound: {each.bound}: {high} was seen while nothing was wrong: give more"
    if each.bound >= 2 * each.recorded:
        yield (
            f"{at}.bound: {each.bound}: twice the recorded {each.recorded} would pass: "
            f"give less than {2 * each.recorded}"
        )
