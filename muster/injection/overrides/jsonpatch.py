"""One operation of a JSON patch that a policy has, at the workload's path, done to the pod.

At the pod two maps are not the template's alone: controllers write labels and annotations of their
own on every pod (``pod-template-hash``, the completion index). So a value for the whole map is laid
over it, and the whole map cannot be removed.
"""

from typing import Final

from muster.injection.overrides.edit import Edit
from muster.injection.overrides.errors import OverrideError
from muster.injection.patching.pointers import Json, Path, same, tokens

_OPERATORS: Final = frozenset({"add", "remove", "replace", "test"})
_SHARED: Final = (("metadata", "labels"), ("metadata", "annotations"))


def patch(edit: Edit, operator: str, pointer: str, value: Json, *, lenient: bool) -> None:
    """Do one operation; raises ``OverrideError``. ``lenient``: see ``Document.replace``."""
    path = edit.at(pointer)
    if path is None:
        return
    if path in _SHARED:
        _over(edit, operator, path, value)
        return
    match operator:
        case "add":
            edit.document.add(path, value)
        case "replace":
            edit.document.replace(path, value, lenient=lenient)
        case "remove":
            edit.document.remove(path)
        case "test":
            if not same(edit.document.find(path), value):
                raise OverrideError(f"test of {pointer} failed")
        case _:
            raise _not_allowed(operator, pointer)


def check(operator: str, pointer: str) -> None:
    """Raise ``OverrideError`` for an operation that can be done to no workload."""
    tokens(pointer)
    if operator not in _OPERATORS:
        raise _not_allowed(operator, pointer)


def _not_allowed(operator: str, pointer: str) -> OverrideError:
    return OverrideError(
        f'operator "{operator}" of {pointer} is not allowed; add, replace, remove and test are'
    )


def _over(edit: Edit, operator: str, path: Path, value: Json) -> None:
    if operator not in ("add", "replace") or not isinstance(value, dict):
        raise OverrideError(
            f"{operator} of all {path[-1]}: controllers write there, too; name the keys one by one"
        )
    for key, item in value.items():
        edit.document.add((*path, key), item)
