"""Extreme values under every key that Muster reads: no reader ever raises.

The keys are found in the source, so a new one is tried without being listed here. A pod that cannot
be read is refused, gated or left alone; the same pod on a node takes its room all the same.
"""

import ast
import importlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.clusters.gangworld import World
from support.injections.injecting import facts
from support.webhooks.hostile import review

import muster
from muster.kube import wire
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating, admit_validating
from webhook.review.validation import ValidationRules
from webhook.review.wire import parse, respond

JSON = dict[str, Any]
KEY: Final = re.compile(r"[a-z0-9][a-z0-9.-]*\.[a-z]+/[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]")
LABEL: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?", re.ASCII)
ROOT: Final = Path(muster.__file__).parent
DIGITS: Final = "9" * 4_301  # one more than Python's int() takes
DEEP: Final = "[" * 20_000 + "]" * 20_000
EXTREMES: Final = (
    *("", " ", "-", "-1", "0", "00", "+1", "1e400", "1" * 19, "9" * 20, DIGITS, "-" + DIGITS),
    *(
        "1.5",
        "1_000",
        "\u0663",
        "\uff13",
        "\u00b2",
        "0x10",
        "NaN",
        "inf",
        "1Gi",
        DIGITS + "Gi",
        "1e" + DIGITS,
    ),
    *("null", "true", "{}", "[]", '"', "{", DEEP, '{"a":' + DEEP + "}", f"[{DIGITS}]", "[1e999]"),
    *(
        '{"' + "a" * 70_000 + '":1}',
        "x" * 250_000,
        ",".join("1" * 9_000),
        "a/b/c/d",
        "../..",
        "a,b",
    ),
    *("\x00", "\x1b[31m", "\u202e", "\ud7ff", "\U0010ffff", "a\nb", "1,2,3"),
    *(
        f"1-{DIGITS}",
        f"{DIGITS}:{DIGITS}",
        f"{DIGITS},1",
        f"5{DIGITS}s",
        "1h" * 5_000,
        "%d%s{0}{a}",
    ),
)
POLICY, RULES = ManagedPolicy(), ValidationRules()
FACTS = facts({"profile": "generic-roce-hostnet", "pods": "accelerated"})


def keys() -> list[str]:
    """Return every string that has the form of a key, of the sources and of their modules."""
    found: set[str] = set()
    for path in ROOT.rglob("*.py"):
        if "protogen" not in path.parts:
            text = path.read_text()
            tree = ast.walk(ast.parse(text)) if KEY.search(text) else ()
            found |= {
                node.value for node in tree if isinstance(node, ast.Constant) and is_key(node.value)
            }
            name = ".".join(("muster", *path.relative_to(ROOT).with_suffix("").parts))
            if name.startswith(("muster.workloads", "muster.injection", "muster.kube.names")):
                module = importlib.import_module(name.removesuffix(".__init__"))
                found |= set(filter(is_key, strings(vars(module))))
    return sorted(found)


def is_key(value: object) -> bool:
    return isinstance(value, str) and KEY.fullmatch(value) is not None


def strings(names: Mapping[str, object]) -> Iterator[str]:
    """Yield the strings that a module's names stand for, and those in their collections."""
    for value in names.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, (tuple, list, set, frozenset, dict)):
            yield from (each for each in value if isinstance(each, str))


KEYS: Final = keys()
values = st.sampled_from(EXTREMES) | st.text(max_size=30) | st.integers().map(str)
notes = st.dictionaries(st.sampled_from(KEYS), values, min_size=1, max_size=4)


def made(found: dict[str, str], **spec: object) -> JSON:
    """Return a pod with the annotations, and with those labels that a label can be."""
    labels = {key: text for key, text in found.items() if LABEL.fullmatch(text)}
    gpu = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "i", "resources": {"requests": gpu, "limits": gpu}}
    meta = {"name": "p", "namespace": "ns", "annotations": found, "labels": labels}
    return {"metadata": meta, "spec": {"containers": [container], **spec}}


def noted(name: str, found: dict[str, str]) -> wire.Node:
    """Return a node with the annotations, and with those labels that a label can be."""
    labels = {key: text for key, text in found.items() if LABEL.fullmatch(text)}
    room = {"nvidia.com/gpu": "8", "cpu": "8", "pods": "110"}
    meta = {"name": name, "annotations": found, "labels": labels}
    return msgspec.convert({"metadata": meta, "status": {"allocatable": room}}, wire.Node)


def test_the_keys_of_all_dialects_are_found() -> None:
    assert len(KEYS) > 100
    assert {"muster.dev/gang-size", "volcano.sh/network-topology-highest-tier"} <= {*KEYS}


@given(notes)
@example({"volcano.sh/network-topology-highest-tier": DIGITS})
def test_admission_answers_whatever_stands_under_a_key(found: dict[str, str]) -> None:
    for name in ("CREATE", "UPDATE"):
        body = json.dumps(review(made(found), operation=name, oldObject=made({}))).encode()
        request = parse(body)
        assert respond(request.uid, admit_mutating(request, POLICY, RULES, FACTS)[0])
        assert respond(request.uid, admit_validating(request, RULES))


@given(notes)
@example({"volcano.sh/network-topology-highest-tier": DIGITS})
def test_the_extender_takes_in_whatever_stands_under_a_key(found: dict[str, str]) -> None:
    world = World()
    world.node("n1", {"nvidia.com/gpu": "8"})
    world.add("", "pods", made(found, schedulingGates=[{"name": "muster.dev/plan"}]))
    world.decisions()


@given(notes)
def test_a_pod_that_cannot_be_read_takes_its_room_on_its_node(found: dict[str, str]) -> None:
    world = World()
    world.node("n1", {"nvidia.com/gpu": "8"})
    world.add("", "pods", made(found, nodeName="n1"))
    nodes = world.state.snapshot().nodes
    row = nodes.row("n1")
    assert row is not None
    assert int(nodes.free("nvidia.com/gpu")[row]) < 8


@pytest.mark.parametrize("key", KEYS)
def test_no_key_of_a_pod_or_a_node_raises_by_itself(key: str) -> None:
    world = World()
    for number, text in enumerate(EXTREMES):
        world.feed.node(noted(f"n{number}", {key: text}))
        gate = [{"name": "muster.dev/plan"}]
        world.add("", "pods", made({key: text}, schedulingGates=gate))
        body = json.dumps(review(made({key: text}))).encode()
        request = parse(body)
        admit_mutating(request, POLICY, RULES, FACTS)
        admit_validating(request, RULES)
