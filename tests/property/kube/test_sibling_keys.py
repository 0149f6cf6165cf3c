"""Labels and annotations of siblings, read by those of the first, against what upb decodes.

::

    two pods ──► bytes ──► SiblingKeys.of(one).read(other) ──► None, or what is decoded of the other
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pods.listedpods import in_protobuf

from muster.kube import names
from muster.kube.firstlist.ownbytes import OwnBytes
from muster.kube.firstlist.ownkeys import shared
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.siblingkeys import SiblingKeys

JSON = dict[str, Any]
INDEX = "batch.kubernetes.io/job-completion-index"
KEYS = st.sampled_from((INDEX, names.PLAN, "cni.projectcalico.org/podIP", "app", "z" * 130))
VALUES = st.sampled_from(("", "0", "63", "ä", INDEX, "x" * 127, "x" * 128, "x" * 20_000))
SAID = st.dictionaries(KEYS, VALUES, max_size=5)
OWNERS = st.sampled_from(([], [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u"}]))


def pod(number: int, labels: JSON, annotations: JSON, owners: list[JSON]) -> JSON:
    meta: JSON = {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}"}
    # Sorted, as kube-apiserver writes maps.
    meta |= {"labels": dict(sorted(labels.items()))}
    meta |= {"annotations": dict(sorted(annotations.items())), "ownerReferences": owners}
    return {"metadata": meta}


def page(*pods: JSON) -> tuple[PackedPage, list[OwnBytes]]:
    found = in_protobuf(list(pods))
    return found, list(found.own(np.arange(len(pods))))


PODS = st.builds(pod, st.integers(0, 99), SAID, SAID, OWNERS)


@given(one=PODS, other=PODS)
def test_what_is_read_of_a_sibling_is_what_is_decoded_of_it(one: JSON, other: JSON) -> None:
    both, owns = page(one, other)
    found = SiblingKeys.of(both.meta(0), owns[0].labels).read(*owns[1][:3])
    whole = both.meta(1)
    alike = shared(both.meta(0)) == shared(whole) and same_keys(one, other)
    assert (found is not None) == alike
    if found is not None:
        assert found == whole


def same_keys(one: JSON, other: JSON) -> bool:
    """Tell whether addresses of network plugins are there in both, or in none."""
    pairs = ((one["metadata"][name], other["metadata"][name]) for name in ("labels", "annotations"))
    return all(these.keys() == those.keys() for these, those in pairs)


@given(one=PODS, cut=st.integers(0, 400), noise=st.binary(max_size=3))
def test_bytes_that_are_no_labels_are_nobodys(one: JSON, cut: int, noise: bytes) -> None:
    found, (own,) = page(one)
    raw = own.labels
    keys = SiblingKeys.of(found.meta(0), raw)
    broken = raw[:cut] + noise + raw[cut + len(noise) + 1 :]
    read = keys.read(own.name, own.uid, broken)
    if read is not None:  # only a value of its own may be another one
        assert shared(read) == shared(found.meta(0))


def test_a_value_that_is_no_text_is_left_to_who_tells_of_it() -> None:
    found, (own,) = page(pod(1, {INDEX: "????"}, {}, []))
    keys = SiblingKeys.of(found.meta(0), own.labels)
    assert keys.read(own.name, own.uid, own.labels.replace(b"????", b"\xff\xfe\xfd\xfc")) is None


@pytest.mark.parametrize("raw", [b"Z", b"Z\xff", b"Z\x02\x0a", b"Z\x05\x0a\x7fabc"])
def test_labels_that_end_in_the_middle_have_no_siblings(raw: bytes) -> None:
    found, _ = page(pod(1, {}, {}, []))
    with pytest.raises((ValueError, IndexError)):
        SiblingKeys.of(found.meta(0), raw)
