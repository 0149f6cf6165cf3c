"""`muster bench waves` on a small cluster: each wave runs because the one before gave way.

::

    20 nodes    0 s: 4 gangs of 5, priority 1    2 s: 1,000    4 s: 1,000,000
"""

import pytest

from loadtest.benches.room import waves

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def test_the_last_wave_runs_whole_and_nobody_runs_in_part() -> None:
    found = waves.run(waves.WaveSettings(nodes=20, size=5, interval_s=2.0))
    assert found["good"], found
    assert found["partial_gangs"] == 0
    assert found["gave_up"] == []
    last = found["wave_seconds"][-1]
    assert last is not None
    assert last > 0
    assert found["victims"] >= 4, "20 nodes are full with the first wave, or with the second"
    assert found["victim_pods"] == 5 * found["victims"]
