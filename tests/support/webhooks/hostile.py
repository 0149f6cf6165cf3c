"""Reviews as no API server sends them: broken JSON, odd values anywhere, and pods below them."""

import json
from typing import Any

from hypothesis import strategies as st

JSON = dict[str, Any]
POD = ("", "v1", "pods")
OTHERS = [
    ("batch", "v1", "jobs"), ("apps", "v1", "deployments"),
    ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
    ("ray.io", "v1", "rayjobs"), ("batch.volcano.sh", "v1alpha1", "jobs"), ("", "v1", "nodes"),
]  # fmt: skip
HUGE = "9" * 5000  # more digits than Python reads as a number

# Each stands in the text as it is: most of them `json.dumps` would not write.
LITERALS = [
    HUGE, "1e400", "-1e-400", "9223372036854775808", "1.5", "NaN", "tru", "", "[[[[[",
    '"\\ud800"', '"\\u0000"', '"\u2028"', '"é日本"', '"\\n"', f'"{"x" * 10_240}"', f'"{HUGE}"',
    "null", "{}", "[]", "[null]", '{"":null}', '{"a":1,"a":2}', "true", "0", '"0"', '"1Gi"',
    "[" * 2000 + "]" * 2000, '{"a":' * 600 + "1" + "}" * 600,
]  # fmt: skip
_RAW = [text.encode() for text in LITERALS] + [b'"\xff"', b'"\xed\xa0\x80"', b"\xff", b'"\xc3"']
_HERE = "@here@"

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(["metadata", "spec"]), inner)
    ),
    max_leaves=8,
)


def review(wanted: JSON, resource: tuple[str, str, str] = POD, **request: object) -> JSON:
    """A review as the API server sends it."""
    group, version, plural = resource
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": group, "version": version, "kind": "Thing"},
            "resource": {"group": group, "version": version, "resource": plural},
            "operation": "CREATE",
            "namespace": "team-a",
            "userInfo": {"username": "somebody"},
            "object": wanted,
            **request,
        },
    }


@st.composite
def spoilt(draw: st.DrawFn, good: st.SearchStrategy[JSON]) -> bytes:
    """A good document, as bytes, with something odd in the place of one of its values."""
    document = json.loads(json.dumps(draw(good)))
    place: Any = document
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        below = place[key]
        if not isinstance(below, dict | list) or not below or draw(st.booleans()):
            place[key] = _HERE
            break
        place = below
    text = json.dumps(document, ensure_ascii=False).encode()
    return text.replace(f'"{_HERE}"'.encode(), draw(st.sampled_from(_RAW)))
