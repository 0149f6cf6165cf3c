"""Whom the plugin asks for its node's pods, and that it learns the same from both."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.cluster.podfeed import ExtenderCredentials, PodsOfNode, client_for
from deviceplugin.config import DevicePluginConfig, PodFeedSettings, check
from deviceplugin.handshake.nodepods import node_pod
from muster.apiwire.nodepods import shown
from muster.kube import wire
from muster.kube.errors import AuthError
from muster.kube.names import PLAN
from muster.observability.configfile import ConfigError

GPU, HCA = "nvidia.com/gpu", "rdma/hca"
PLANS = ('{"id":"p","node":"n1","devices":{"n1":["g0"]},"generation":1}', "{", "")

limits = st.dictionaries(st.sampled_from([GPU, HCA, "cpu"]), st.sampled_from(["1", "2", "4k"]))
containers = st.builds(
    lambda name, asked, policy: wire.Container(
        name=name, resources=wire.Resources(limits=asked), restart_policy=policy
    ),
    st.sampled_from(["a", "b"]),
    limits,
    st.sampled_from(["", "Always"]),
)
times = st.none() | st.datetimes(timezones=st.just(UTC))


@given(
    main=st.lists(containers, max_size=2),
    init=st.lists(containers, max_size=2),
    plan=st.none() | st.sampled_from(PLANS),
    times=st.tuples(times, times),
    phase=st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed"]),
)
def test_the_extender_shows_all_that_the_plugin_reads_of_a_pod(
    main: list[wire.Container],
    init: list[wire.Container],
    plan: str | None,
    times: tuple[datetime | None, datetime | None],
    phase: str,
) -> None:
    meta = wire.ObjectMeta(
        name="a",
        namespace="ns",
        uid="u",
        creation_timestamp=times[0],
        deletion_timestamp=times[1],
        annotations={} if plan is None else {PLAN: plan},
    )
    spec = wire.PodSpec(containers=tuple(main), init_containers=tuple(init))
    pod = wire.Pod(metadata=meta, spec=spec, status=wire.PodStatus(phase=phase))
    came = msgspec.json.decode(msgspec.json.encode(shown(pod)), type=wire.Pod)
    assert node_pod(came, "n1", 0, {GPU, HCA}) == node_pod(pod, "n1", 0, {GPU, HCA})


def test_the_api_server_is_asked_unless_an_extender_is_named() -> None:
    assert client_for(PodFeedSettings()) is None
    assert client_for(PodFeedSettings(extender="https://extender")) is not None
    assert PodsOfNode("", "v1", "pods", wire.Pod, node="n1").path() == "/v1/nodes/n1/pods"


def test_a_token_is_read_again_and_never_sent_in_the_clear(tmp_path: Path) -> None:
    token = tmp_path / "token"
    source = ExtenderCredentials(PodFeedSettings("https://extender/", token_file=token))
    with pytest.raises(AuthError, match="mount the pod's token"):
        source.load()
    token.write_text("one\n")
    assert source.load().server == "https://extender"
    assert source.authorization() == "Bearer one"
    token.write_text("two\n")
    assert source.authorization() == "Bearer two"
    with pytest.raises(ConfigError, match=r"pods\.extender: 'http://extender' does not begin"):
        check(DevicePluginConfig(pods=PodFeedSettings(extender="http://extender")))
