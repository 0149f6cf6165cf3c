"""A choice that is always valid, for cases in which the better one fails. Pure."""

from collections.abc import Sequence


def plain(available: Sequence[str], must_include: Sequence[str], size: int) -> tuple[str, ...]:
    """Return ``must_include`` and then the first others, ``size`` ids if there are so many.

    Every id is in ``available`` or ``must_include``, and none comes twice.
    """
    ordered = dict.fromkeys((*must_include, *sorted(available)))
    return tuple(ordered)[: max(0, size)]


def is_valid(
    chosen: Sequence[str], available: Sequence[str], must_include: Sequence[str], size: int
) -> bool:
    """Return whether a choice has the right size, no id twice and only offered ids."""
    unique = frozenset(chosen)
    return (
        len(chosen) == len(unique) == size
        and unique >= frozenset(must_include)
        and unique <= frozenset(available) | frozenset(must_include)
    )
