"""`muster bench webhook`, in small: the webhook as a program, echo, rotation and slow clients."""

from loadtest.benches import webhook
from loadtest.benches.webhook import Settings


def test_no_call_goes_wrong_while_authorities_and_slow_clients_come_and_go() -> None:
    found = webhook.run(
        Settings(connections=4, rate=50, rounds=1, seconds=0.5, slow_clients=20, rotations=1)
    )
    assert found["errors"] == 0
    assert found["rotations"] == 1
    assert {"reviews_per_second", "p99_ms", "p99_ratio_to_echo"} <= found.keys()
