"""What of a policy can be done to no pod in no cluster: found when it is read."""

from collections.abc import Callable, Iterable, Iterator

from muster.injection.errors import PatchError

Check = Callable[[], object]
"""Raises ``PatchError`` for what is wrong; it is what the step itself asks first."""


def problems(checks: Iterable[Check]) -> Iterator[str]:
    """Yield what is wrong, each text once."""
    seen: set[str] = set()
    for check in checks:
        try:
            check()
        except PatchError as error:
            text = str(error)
            if text not in seen:
                seen.add(text)
                yield text
