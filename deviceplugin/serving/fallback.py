"""A choice that is always valid, for when the better one fails. Pure."""

from collections.abc import Sequence


def plain(available: Sequence[str], must_include: Sequence[str], size: int) -> tuple[str, ...]:
    """Return what must be included and then the first others, ``size`` in all if there are.

    Every id is of ``available`` or ``must_include``, and none comes twice.
    """
    ordered = dict.fromkeys((*must_include, *sorted(available)))
    return tuple(ordered)[: max(0, size)]


def is_valid(
    chosen: Sequence[str], available: Sequence[str], must_include: Sequence[str], size: int
) -> bool:
    """Tell whether a choice has the right size, no id twice and none that was not offered."""
    unique = frozenset(chosen)
    return (
        len(chosen) == len(unique) == size
        and unique >= frozenset(must_include)
        and unique <= frozenset(available) | frozenset(must_include)
    )
