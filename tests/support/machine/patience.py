"""How long a test waits for real programs before something must be wrong with them.

A wait ends as soon as what it waits for is there, and where its program has ended without being
told to. So only a run that is red in any case waits this long, and it may be long: with three
workers and other work on two cores, a pod that a real kubelet has running within a second took more
than thirty.
"""

from typing import Final

PATIENCE_S: Final = 120.0  # a single wait
TEST_S: Final = 600.0  # a whole test with real programs: several waits, and what it starts first
