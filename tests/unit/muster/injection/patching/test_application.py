"""Our own application of our own patches does what an independent one does."""

import json

import jsonpatch
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.injection.errors import Absent
from muster.injection.patching.apply import applied
from muster.injection.patching.operations import Operation, Removal, Replacement, pointer
from muster.injection.templates.manifests import templates

PLACES = st.sampled_from(["in a map", "in a list"])
KEYS = st.sampled_from(["a", "b", "x/y", "x~y", "~1"])


@given(st.dictionaries(KEYS, st.lists(st.integers(), min_size=1)), KEYS, PLACES, st.data())
def test_adding_to_maps_and_lists(
    document: dict[str, list[int]], key: str, where: str, data: st.DataObject
) -> None:
    operation = Operation(pointer("m", key), "value")
    if where == "in a list" and key in document:
        at = data.draw(st.sampled_from(["-", "0", str(len(document[key]))]))
        operation = Operation(pointer("m", key, at), "value")
    patch = json.loads(msgspec.json.encode([operation]))
    assert applied({"m": document}, [operation]) == jsonpatch.apply_patch({"m": document}, patch)


@given(st.dictionaries(KEYS, st.lists(st.integers(), min_size=1), min_size=1), st.data())
def test_replacing_and_removing_what_is_there(
    document: dict[str, list[int]], data: st.DataObject
) -> None:
    path = [data.draw(st.sampled_from(sorted(document)))]
    if data.draw(st.booleans()):
        path.append(str(data.draw(st.integers(0, len(document[path[0]]) - 1))))
    where = pointer(*path)
    operation = data.draw(st.sampled_from([Replacement(where, "value"), Removal(where)]))
    before = json.loads(json.dumps(document))
    patch = json.loads(msgspec.json.encode([operation]))
    assert applied(document, [operation]) == jsonpatch.apply_patch(document, patch)
    assert document == before


@pytest.mark.parametrize("where", ["/a/b/c", "/l/3", "/l/x", "", "/t/x"])
def test_a_path_that_leads_nowhere_is_an_error(where: str) -> None:
    with pytest.raises(Absent):
        applied({"l": [1], "t": "text"}, [Operation(where, 1)])


def test_a_template_is_found_wherever_its_kind_keeps_it() -> None:
    pod = {"spec": {"containers": [{"name": "c"}]}}
    jobset = {
        "spec": {
            "replicatedJobs": [
                {"replicas": 2, "template": {"spec": {"parallelism": 4, "template": pod}}}
            ]
        }
    }
    (found,) = templates(jobset)
    assert found.where == "spec.replicatedJobs[0].template.spec.template"
    assert found.pods == 8
    assert found.pod == pod
