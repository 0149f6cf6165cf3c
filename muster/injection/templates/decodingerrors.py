"""Errors of decoding, with the path of the field as it stands in the user's object. Pure.

msgspec ends its text with the path from the value that it converted, and writes ``[...]`` for every
key of a map: ``Expected `str`, got `int` - at `$.spec.worker[...].env[0].value` ``. Here that path
is put behind the place of the value in the document, and the keys are looked up.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from muster.injection.errors import TemplateError
from muster.injection.patching.pointers import Json, Path
from muster.injection.templates.manifests import written

_STEP: Final = re.compile(r"\.(?P<member>[^.\[\]]+)|\[(?P<index>[0-9]+|\.\.\.)\]")
_ANY: Final = "..."
_GOT: Final = re.compile(r"got `(?P<type>[a-z]+)`")
#: msgspec's words for the types of JSON values
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "null": type(None),
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "array": list,
    "object": dict,
}


def template_error(
    error: msgspec.ValidationError, document: Json, where: Path = ()
) -> TemplateError:
    """Return the error of the value that stands at ``where`` in a document."""
    problem, _, inner = str(error).removesuffix("`").partition(" - at `$")
    steps = tuple(match["member"] or match["index"] for match in _STEP.finditer(inner))
    path = (*where, *steps)
    got = _GOT.search(problem)
    found = next(_concrete(document, path, got["type"] if got else ""), path)
    return TemplateError(written(found), problem)


def _concrete(value: Json, path: Path, wanted: str, done: Path = ()) -> Iterator[Path]:
    """Yield the paths of this form that lead to a value of the type; "" is any type."""
    if not path:
        if _is(value, wanted):
            yield done
        return
    step, rest = path[0], path[1:]
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        yield from _concrete(value[int(step)], rest, wanted, (*done, step))
    if isinstance(value, dict):
        for key in value if step == _ANY else (step,):
            if key in value:
                yield from _concrete(value[key], rest, wanted, (*done, key))


def _is(value: Json, name: str) -> bool:
    if name not in _TYPES:
        return True
    return isinstance(value, _TYPES[name]) and (name != "int" or not isinstance(value, bool))
