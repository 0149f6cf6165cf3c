"""Objects that are there from the beginning: read from a file, not written over HTTP.

A million pods take an hour to create by requests; read from a file they take a minute. One line
is one object::

    /api/v1/namespaces/default/pods<TAB>{"metadata": …}

They get what any new object gets (UID, time, defaults, first status, checks), except admission.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import orjson

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.objects import Objects
from loadtest.testbed.standins.apiserver.requests import Target, decode_object, parse_target
from loadtest.testbed.standins.apiserver.status import StatusError


class PopulationError(Exception):
    """A line that cannot be taken; the message has its number, its object and what is wrong."""


def write(file: Path, objects: Iterable[tuple[str, JsonObject]]) -> int:
    """Write (path of the collection, object) to ``file``; returns how many."""
    count = 0
    with file.open("wb") as out:
        for path, obj in objects:
            out.write(path.encode() + b"\t" + orjson.dumps(obj) + b"\n")
            count += 1
    return count


def read(file: Path, objects: Objects) -> int:
    """Create every object of ``file``; returns how many. Raises ``PopulationError``."""
    with file.open("rb") as lines:
        return sum(1 for _ in _created(lines, objects))


def _created(lines: BinaryIO, objects: Objects) -> Iterator[None]:
    targets: dict[bytes, Target] = {}
    for number, line in enumerate(lines, start=1):
        path, _, data = line.partition(b"\t")
        try:
            if path not in targets:
                targets[path] = parse_target(path.decode(), objects.registry)
            _create(objects, targets[path], data)
        except (StatusError, UnicodeDecodeError) as error:
            raise PopulationError(f"line {number}: {line[:120]!r}: {error}") from error
        yield


def _create(objects: Objects, target: Target, data: bytes) -> None:
    made = objects.begin(target.resource, target.namespace, decode_object(data))
    objects.create(target.resource, objects.finish(target.resource, made))
