"""Events of our own writes are known by their version, wherever else such a number stands."""

import orjson
import pytest

from muster.kube.watching.ownwrites import without

OURS = frozenset({b"7"})


def event(verb: str, version: str, **more: object) -> bytes:
    """Return a line as kube-apiserver writes it: the version before labels and annotations."""
    meta = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": version, **more}
    made = {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {"nodeName": "n"}}
    return orjson.dumps({"type": verb, "object": made}) + b"\n"


def test_what_is_ours_is_left_out_and_the_rest_stays_byte_for_byte() -> None:
    others = event("ADDED", "6"), event("MODIFIED", "8"), event("DELETED", "9")
    lines = [others[0], event("MODIFIED", "7"), *others[1:]]
    assert without(b"".join(lines), OURS) == (b"".join(others), "")


def test_the_version_is_told_where_nothing_comes_behind_it() -> None:
    assert without(event("MODIFIED", "6") + event("MODIFIED", "7"), OURS)[1] == "7"
    assert without(event("MODIFIED", "7"), OURS) == (b"", "7")
    assert without(b"", OURS) == (b"", "")


@pytest.mark.parametrize(
    "line",
    [
        event("MODIFIED", "77"),
        event("MODIFIED", "", labels={"resourceVersion": "7"}),
        event("MODIFIED", "6", labels={"resourceVersion": "7"}),
        event("MODIFIED", "6", annotations={"was": '{"resourceVersion":"7"}'}),
        event("MODIFIED", "6", ownerReferences=[{"resourceVersion": "7"}]),
        event("DELETED", "7"),
        event("ADDED", "7"),
        b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n',
        b'{"type":"ERROR","object":{"code":410}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"7\n',
        b"7\n",
    ],
)
def test_whatever_else_says_such_a_number_stays(line: bytes) -> None:
    assert without(line, OURS) == (line, "")
