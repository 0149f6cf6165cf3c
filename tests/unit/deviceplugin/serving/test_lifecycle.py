"""What a server does next, without a server: the drawing of serving.lifecycle, edge by edge."""

from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from deviceplugin.serving.lifecycle import (
    LONGEST_RETRY_S,
    PATIENCE_S,
    SETTLE_S,
    STEADY_S,
    STREAM_S,
    Lifecycle,
    LifecycleAction,
    ServerState,
    SocketSight,
)

KUBELET, ANOTHER = (1, 100), (2, 200)


def no_jitter() -> float:
    return 1.0


def seen(now: float, *, own: bool = True, kubelet: tuple[int, int] | None = KUBELET) -> SocketSight:
    return SocketSight(now, own, kubelet)


def served(*, jitter: Callable[[], float] = no_jitter, kubelet_finds: bool = False) -> Lifecycle:
    it = Lifecycle(jitter, kubelet_finds)
    assert it.step(seen(0, own=False)) is LifecycleAction.SERVE
    it.served(0)
    return it


def followed() -> Lifecycle:
    it = served()
    assert it.step(seen(0)) is LifecycleAction.REGISTER
    it.answered(0)
    it.stream_opened(0)
    assert it.reason == ""
    return it


def test_it_serves_first_and_registers_then() -> None:
    it = Lifecycle(no_jitter)
    assert it.step(seen(0, own=False)) is LifecycleAction.SERVE
    it.served(0)
    assert it.step(seen(0)) is LifecycleAction.REGISTER
    assert it.step(seen(0)) is LifecycleAction.WAIT


def test_it_waits_for_the_kubelet_s_socket() -> None:
    it = served()
    assert it.step(seen(1, kubelet=None)) is LifecycleAction.WAIT
    assert it.step(seen(1000, kubelet=KUBELET)) is LifecycleAction.REGISTER


def test_a_stream_that_opens_before_the_answer_counts() -> None:
    it = served()
    it.step(seen(0))
    it.stream_opened(0)
    it.answered(0)
    assert it.state is ServerState.FOLLOWED


@pytest.mark.parametrize("finds", [False, True])
def test_an_answer_that_comes_after_the_stream_has_ended_changes_nothing(*, finds: bool) -> None:
    it = served(kubelet_finds=finds)
    it.step(seen(0))
    it.stream_opened(0)
    it.stream_lost(1)
    it.answered(1)
    assert it.reason == "the kubelet stopped listening"
    assert it.step(seen(1 + SETTLE_S)) is (
        LifecycleAction.WAIT if finds else LifecycleAction.REGISTER
    )
    if finds:
        it.step(seen(1 + PATIENCE_S))
        assert it.state is ServerState.DOWN


@pytest.mark.parametrize("finds", [False, True])
def test_the_answer_of_a_later_kubelet_is_one_that_a_stream_is_to_follow(*, finds: bool) -> None:
    it = served(kubelet_finds=finds)
    it.step(seen(0))
    it.stream_opened(0)
    it.step(seen(2, kubelet=ANOTHER))
    it.answered(2)
    assert it.state is ServerState.ANSWERED


def test_a_lost_stream_is_answered_by_registering_once_the_kubelet_is_done_with_it() -> None:
    """Before that it would disconnect the new registration (plugin/v1beta1/handler.go)."""
    it = followed()
    it.stream_lost(STEADY_S)
    assert it.step(seen(STEADY_S)) is LifecycleAction.WAIT
    assert it.due_s(STEADY_S) == pytest.approx(SETTLE_S)
    assert it.step(seen(STEADY_S + SETTLE_S)) is LifecycleAction.REGISTER


def test_streams_that_never_last_are_answered_ever_more_slowly() -> None:
    it = followed()
    now, gaps = 0.0, []
    for _ in range(12):
        it.stream_lost(now)
        before = now
        while it.step(seen(now)) is not LifecycleAction.REGISTER:
            now += 0.0625  # exact
        gaps.append(now - before)
        it.answered(now)
        it.stream_opened(now)
    assert SETTLE_S <= gaps[0] <= SETTLE_S + 0.0625
    assert gaps == sorted(gaps)
    assert LONGEST_RETRY_S <= gaps[-1] <= LONGEST_RETRY_S + 0.0625


def test_another_kubelet_socket_means_registering_again_without_waiting() -> None:
    it = followed()
    it.stream_lost(1)
    it.failed(1, "refused")
    assert it.step(seen(1, kubelet=ANOTHER)) is LifecycleAction.REGISTER


def test_a_kubelet_that_is_replaced_while_it_is_silent_is_not_waited_for() -> None:
    it = served()
    assert it.step(seen(0)) is LifecycleAction.REGISTER
    assert it.step(seen(1)) is LifecycleAction.WAIT
    assert it.step(seen(2, kubelet=ANOTHER)) is LifecycleAction.REGISTER


def test_a_removed_socket_is_made_anew_in_every_state() -> None:
    for state in (
        ServerState.SERVED,
        ServerState.REGISTERING,
        ServerState.ANSWERED,
        ServerState.FOLLOWED,
    ):
        it = followed()
        it.state = state
        assert it.step(seen(3, own=False)) is LifecycleAction.SERVE


def test_an_answer_without_a_stream_is_no_registration() -> None:
    it = served()
    it.step(seen(0))
    it.answered(0)
    assert it.step(seen(STREAM_S - 0.1)) is LifecycleAction.WAIT
    it.step(seen(STREAM_S))
    assert it.step(seen(STREAM_S + 1)) is LifecycleAction.REGISTER


def test_drift_serves_anew_only_while_the_kubelet_follows() -> None:
    it = followed()
    it.drifted(5)
    assert it.step(seen(5, own=True)) is LifecycleAction.SERVE
    it.served(5)
    it.drifted(5)
    assert it.state is ServerState.SERVED


def test_after_ending_its_own_streams_it_gives_the_kubelet_a_moment_to_notice() -> None:
    it = followed()
    it.drifted(5)
    assert it.step(seen(5)) is LifecycleAction.SERVE
    it.served(5, after_streams=True)
    assert it.step(seen(5)) is LifecycleAction.WAIT
    assert it.step(seen(5 + SETTLE_S)) is LifecycleAction.REGISTER


def test_where_the_kubelet_finds_it_nothing_is_called_and_in_the_end_the_socket_is_new() -> None:
    it = served(kubelet_finds=True)
    assert it.step(seen(1)) is LifecycleAction.WAIT
    assert it.step(seen(PATIENCE_S)) is LifecycleAction.WAIT
    assert it.step(seen(PATIENCE_S + 1)) is LifecycleAction.SERVE


def test_the_wait_has_jitter_over_its_upper_half() -> None:
    for jitter, early, late in ((0.0, 0.049, 0.051), (1.0, 0.099, 0.101)):
        it = served(jitter=lambda jitter=jitter: jitter)
        it.step(seen(0))
        it.failed(0, "refused")
        assert it.step(seen(early)) is LifecycleAction.WAIT
        assert it.step(seen(late)) is LifecycleAction.REGISTER


def test_where_another_instance_ends_the_one_that_is_left_registers_again() -> None:
    it = followed()
    other = frozenset({"muster-nvidia.com-gpu-other-1.sock"})
    assert (
        it.step(SocketSight(60, own_socket=True, kubelet=KUBELET, others=other))
        is LifecycleAction.WAIT
    )
    assert it.step(seen(61)) is LifecycleAction.REGISTER


def test_who_has_registered_since_the_other_s_end_began_need_not_do_so_again() -> None:
    it = followed()
    other = frozenset({"muster-nvidia.com-gpu-other-1.sock"})
    it.step(SocketSight(60, own_socket=True, kubelet=KUBELET, others=other))
    it.stream_lost(60.5)  # the kubelet has cut it off
    assert (
        it.step(SocketSight(60.8, own_socket=True, kubelet=KUBELET, others=other))
        is LifecycleAction.REGISTER
    )
    it.answered(60.8)
    it.stream_opened(60.8)
    assert it.step(seen(61)) is LifecycleAction.WAIT


class AnyHistory(RuleBasedStateMachine):
    """Whatever happens, in whatever order: once the world is calm, it comes to be followed."""

    def __init__(self) -> None:
        super().__init__()
        self.it = Lifecycle(no_jitter)
        self.now = 0.0
        self.kubelet: tuple[int, int] | None = None
        self.own = False

    @rule(seconds=st.floats(0, 30))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(which=st.sampled_from([None, KUBELET, ANOTHER]))
    def kubelet_is(self, which: tuple[int, int] | None) -> None:
        self.kubelet = which

    @rule()
    def own_socket_is_removed(self) -> None:
        self.own = False

    @rule(fails=st.booleans())
    def step(self, *, fails: bool) -> None:
        before = self.it.state
        action = self.it.step(SocketSight(self.now, self.own, self.kubelet))
        if action is LifecycleAction.SERVE and fails:
            self.it.failed(self.now, "cannot serve")
        elif action is LifecycleAction.SERVE:
            self.own = True
            self.it.served(self.now)
        elif action is LifecycleAction.REGISTER:
            assert self.kubelet is not None
            assert self.own
            assert before is not ServerState.FOLLOWED or self.it.state is ServerState.REGISTERING

    @precondition(lambda self: self.it.state is ServerState.REGISTERING)
    @rule(well=st.booleans())
    def kubelet_answers(self, *, well: bool) -> None:
        if well:
            self.it.answered(self.now)
        else:
            self.it.failed(self.now, "refused")

    @rule(opened=st.booleans())
    def stream(self, *, opened: bool) -> None:
        if opened:
            self.it.stream_opened(self.now)
        else:
            self.it.stream_lost(self.now)

    @rule()
    def drift(self) -> None:
        self.it.drifted(self.now)

    @invariant()
    def tells_why_unless_followed(self) -> None:
        assert (self.it.reason == "") == (self.it.state is ServerState.FOLLOWED)

    def teardown(self) -> None:
        """A kubelet that answers is followed by within a minute, 20 steps of a second and a few."""
        self.kubelet = self.kubelet or KUBELET
        for _ in range(60):
            self.now += 1
            action = self.it.step(SocketSight(self.now, self.own, self.kubelet))
            if action is LifecycleAction.SERVE:
                self.own = True
                self.it.served(self.now)
            elif action is LifecycleAction.REGISTER or self.it.state is ServerState.REGISTERING:
                self.it.answered(self.now)
                self.it.stream_opened(self.now)
        assert self.it.state is ServerState.FOLLOWED


TestAnyHistory = AnyHistory.TestCase


@pytest.mark.parametrize("state", [ServerState.DOWN, ServerState.SERVED])
def test_a_stream_that_was_of_an_earlier_time_changes_nothing(state: ServerState) -> None:
    it = Lifecycle(no_jitter)
    it.state = state
    it.stream_lost(1)
    assert it.state is state
