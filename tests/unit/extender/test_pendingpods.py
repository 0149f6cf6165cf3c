"""What is known of pods that wait: the versions that their releases made, and no others."""

from hypothesis import given
from hypothesis import strategies as st

from extender.pendingpods import PendingPod, PendingPods
from muster.cluster.ids import PodUid
from muster.kube.writing.podwrites import PodRef

UIDS = st.sampled_from([PodUid(bytes(15) + bytes([n])) for n in range(3)])
STEPS = st.tuples(st.sampled_from(["put", "released", "drop"]), UIDS)


def record() -> PendingPod:
    return PendingPod(
        PodRef("ns", "p", "u"), None, gated=True, owned=True, soft=False, pinned=False
    )


@given(st.lists(STEPS, max_size=30))
def test_echoes_are_the_versions_of_the_releases_that_are_known(
    steps: list[tuple[str, PodUid]],
) -> None:
    pods, known = PendingPods(), dict[PodUid, str]()
    for number, (step, uid) in enumerate(steps):
        if step == "put":
            pods.put(uid, record())
            known[uid] = ""
        elif step == "drop":
            pods.drop(uid)
            known.pop(uid, None)
        else:
            pods.released(uid, str(number))
            known |= {uid: str(number)} if uid in known else {}
        assert pods.echoes == {version.encode() for version in known.values() if version}
