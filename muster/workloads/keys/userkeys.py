"""Muster's own labels and annotations, read one by one into typed values.

Every key may be a label or an annotation; labels are read first. (A label value cannot
hold a slash, so a full topology key needs an annotation; in a label the last part of the
default levels' keys is understood: ``zone``, ``block``, ``rack``, ``host``.)

Reading never fails: a field that cannot be read keeps its default and leaves an error
that names field, value and what is allowed. ``muster.workloads.keys.labels`` checks the fields
against each other.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from muster.kube import names
from muster.workloads.keys.foreignwishes import NONE, Wishes, wishes
from muster.workloads.wholenumbers import whole

MAX_MEMBERS: Final = 1_000_000  # members of one gang: the model's limit of pods in a cluster
SHORT_LEVELS: Final[Mapping[str, str]] = {
    "zone": names.ZONE, "block": names.BLOCK, "rack": names.RACK, "host": names.HOST,
}  # fmt: skip
_KEPT: Final = 1_024  # readings: gangs that arrive at about the same time
_KEPT_CHARS: Final = 1_024  # of all values of a reading that is kept
_Said = tuple[tuple[str, str], ...]
_LONGEST_VALUE: Final = 80  # characters of a refused value that a message repeats
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL_VALUE: Final = re.compile(_PART)
_LABEL_KEY: Final = re.compile(rf"(?:[a-z0-9](?:[a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_PART}")
_NAME_RULE: Final = (
    "1 to 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit"
)
COUNT_RULE: Final = f"a whole number from 1 to {MAX_MEMBERS}"
LONGEST_RELAX_S: Final = 30 * 86_400
LONGEST_RUN_S: Final = 365 * 86_400
DURATION_RULE: Final = 'a time such as "90s", "10m" or "1h30m", at most 720h'
RUN_TIME_RULE: Final = 'a time such as "90s", "10m" or "1h30m", at most 8760h'
_DURATION: Final = re.compile(r"(?:[0-9]{1,7}[hms]){1,3}")
_PARTS: Final = re.compile(r"([0-9]+)([hms])")
_UNITS: Final[Mapping[str, int]] = {"h": 3600, "m": 60, "s": 1}
LEVEL_RULE: Final = f"a node label key, or one of {', '.join(SHORT_LEVELS)}"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing that is wrong: which field, what it says, what it may say."""

    field: str
    value: str
    allowed: str

    def __str__(self) -> str:
        """Return the one-line message that users see."""
        return f'{self.field}: "{shorten(self.value)}" is not allowed: {self.allowed}'


@dataclass(frozen=True, slots=True)
class Minimum:
    """A count, or a percentage of the gang's size: ``gang-min``, ``spares``."""

    number: int
    percent: bool = False

    def of(self, size: int) -> int:
        """Return the members meant, a percentage rounded up."""
        return -(-size * self.number // 100) if self.percent else self.number


@dataclass(frozen=True, slots=True)
class UserKeys:
    """What a user wrote under ``muster.dev/``, typed. Levels are node label keys.

    ``slice_sizes`` and ``slice_levels`` go together, widest first. ``relax_after``,
    ``max_run_time``: seconds. ``spares``: of the gang's size, or of a slice's where there are
    slices. ``restarts``: ``repair: restart``. ``serves``: ``None``: as its owner's kind says.
    """

    gang: str = ""
    size: int | None = None
    minimum: Minimum | None = None
    required: str | None = None
    preferred: str | None = None
    relax_after: float | None = None
    max_run_time: float | None = None
    slice_sizes: tuple[int, ...] = ()
    slice_levels: tuple[str, ...] = ()
    spares: Minimum | None = None
    spare_level: str | None = None
    restarts: bool = False
    queue: str = ""
    role: str = ""
    fabric: str = ""
    inject: bool = True
    movable: bool = True
    serves: bool | None = None

    @property
    def sliced(self) -> bool:
        """Whether anything is said about slices."""
        return bool(self.slice_sizes or self.slice_levels)

    @property
    def slice_size(self) -> int | None:
        """The size of the innermost slices."""
        return self.slice_sizes[-1] if self.slice_sizes else None

    @property
    def slice_level(self) -> str | None:
        """The level of the innermost slices."""
        return self.slice_levels[-1] if self.slice_levels else None


@dataclass(frozen=True, slots=True)
class Reading:
    """The keys, the errors of single fields, and where each key was found with its text.

    ``wishes``: what stands beside them in the keys of other schedulers. ``is_kept``: it is the
    one reading of all who say the same, for a while.
    """

    keys: UserKeys = UserKeys()
    errors: tuple[FieldError, ...] = ()
    found: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    wishes: Wishes = NONE
    is_kept: bool = field(default=False, compare=False)

    def error(self, key: str, allowed: str) -> FieldError:
        """Return an error about ``key``, which must be in ``found``."""
        where, text = self.found[key]
        return FieldError(where, text, allowed)


def read(
    labels: Mapping[str, str], annotations: Mapping[str, str], *, path: str = "metadata"
) -> Reading:
    """Read every user key; ``path`` is the prefix of the fields named in errors.

    The pods of a gang say the same, and each is read more than once on its way: what the texts
    mean is remembered for a while (a pure function of a few short texts; long ones are not kept).
    """
    wished = wishes(labels, annotations)
    on_labels = tuple([item for item in labels.items() if item[0] in USER_KEYS])
    on_annotations = tuple([item for item in annotations.items() if item[0] in USER_KEYS])
    if not on_labels and not on_annotations:
        return _NOTHING if wished is NONE else Reading(wishes=wished)
    size = sum([len(text) for _, text in (*on_labels, *on_annotations)])
    parse = _remembered if size <= _KEPT_CHARS else _parsed
    reading = parse(on_labels, on_annotations, path)
    return reading if wished is NONE else replace(reading, wishes=wished, is_kept=False)


def _parsed(on_labels: _Said, on_annotations: _Said, path: str) -> Reading:
    """Return what the texts mean, whatever order they stand in."""
    labels, annotations = dict(on_labels), dict(on_annotations)
    found: dict[str, tuple[str, str]] = {}
    errors: list[FieldError] = []
    values: dict[str, object] = {}
    for key, (attribute, parse) in _FIELDS.items():
        text = labels.get(key, annotations.get(key))
        if text is None:
            continue
        kind = "labels" if key in labels else "annotations"
        found[key] = (f"{path}.{kind}[{key}]", text)
        try:
            values[attribute] = parse(text)
        except ValueError as error:
            errors.append(FieldError(found[key][0], text, str(error)))
        errors += _twice(key, labels, annotations, path)
    keys = UserKeys(**values)  # type: ignore[arg-type]  # the table pairs attributes with parsers of their type
    return Reading(keys, tuple(errors), MappingProxyType(found))


@lru_cache(maxsize=_KEPT)
def _remembered(on_labels: _Said, on_annotations: _Said, path: str) -> Reading:
    return replace(_parsed(on_labels, on_annotations, path), is_kept=True)


def shorten(text: str) -> str:
    """Return ``text`` cut and without control characters: it goes into one-line messages."""
    cut = text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"
    return "".join(c if c.isprintable() else "�" for c in cut)


def _twice(
    key: str, labels: Mapping[str, str], annotations: Mapping[str, str], path: str
) -> list[FieldError]:
    """Return an error if label and annotation of the same key say different things."""
    if key in labels and key in annotations and labels[key] != annotations[key]:
        rule = f'the label of the same key says "{shorten(labels[key])}": keep one of the two'
        return [FieldError(f"{path}.annotations[{key}]", annotations[key], rule)]
    return []


def _count(text: str) -> int:
    number = whole(text, MAX_MEMBERS)
    if not number:
        raise ValueError(COUNT_RULE)
    return number


def _counts(text: str) -> tuple[int, ...]:
    try:
        return tuple(_count(part.strip()) for part in text.split(","))
    except ValueError:
        raise ValueError(f"{COUNT_RULE}; for slices of slices several, widest first") from None


def _duration(text: str) -> float:
    return _seconds(text, LONGEST_RELAX_S, DURATION_RULE)


def _run_time(text: str) -> float:
    return _seconds(text, LONGEST_RUN_S, RUN_TIME_RULE)


def _seconds(text: str, most: int, rule: str) -> float:
    parts = _DURATION.fullmatch(text)
    seconds = sum(int(n) * _UNITS[unit] for n, unit in _PARTS.findall(text)) if parts else 0
    if not 0 < seconds <= most:
        raise ValueError(rule)
    return float(seconds)


def _minimum(text: str) -> Minimum:
    digits, percent = text.removesuffix("%"), text.endswith("%")
    try:
        number = _count(digits)
    except ValueError:
        number = 0
    if number == 0 or (percent and number > 100):  # noqa: PLR2004 - a hundred percent
        raise ValueError(f'{COUNT_RULE}, or a percentage from "1%" to "100%"')
    return Minimum(number, percent)


def _spares(text: str) -> Minimum:
    try:
        return _minimum(text)
    except ValueError:
        if text == "0":
            return Minimum(0)
        rule = f'a whole number from 0 to {MAX_MEMBERS}, or a percentage from "1%" to "100%"'
        raise ValueError(rule) from None


def _repair(text: str) -> bool:
    if text not in {"wait", "restart"}:
        raise ValueError('"wait" or "restart"')
    return text == "restart"


def _level(text: str) -> str:
    if not _LABEL_KEY.fullmatch(text):
        raise ValueError(LEVEL_RULE)
    return SHORT_LEVELS.get(text, text)


def _levels(text: str) -> tuple[str, ...]:
    return tuple(_level(part.strip()) for part in text.split(","))


def _name(text: str) -> str:
    if not _LABEL_VALUE.fullmatch(text):
        raise ValueError(_NAME_RULE)
    return text


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError('"true" or "false"')
    return text == "true"


_FIELDS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    names.GANG: ("gang", _name),
    names.GANG_SIZE: ("size", _count),
    names.GANG_MIN: ("minimum", _minimum),
    names.TOPOLOGY_REQUIRED: ("required", _level),
    names.TOPOLOGY_PREFERRED: ("preferred", _level),
    names.TOPOLOGY_RELAX_AFTER: ("relax_after", _duration),
    names.MAX_RUN_TIME: ("max_run_time", _run_time),
    names.SLICE_SIZE: ("slice_sizes", _counts),
    names.SLICE_TOPOLOGY: ("slice_levels", _levels),
    names.SPARES: ("spares", _spares),
    names.SPARE_LEVEL: ("spare_level", _level),
    names.REPAIR: ("restarts", _repair),
    names.QUEUE: ("queue", _name),
    names.ROLE: ("role", _name),
    names.FABRIC: ("fabric", _name),
    names.INJECT: ("inject", _switch),
    names.MOVABLE: ("movable", _switch),
    names.SERVES: ("serves", _switch),
}
USER_KEYS: Final = frozenset(_FIELDS)
_NOTHING: Final = Reading()
