"""What every test shares: the path of `support`, and how deep hypothesis digs.

`MUSTER_HYPOTHESIS_PROFILE=deep` digs for hours' worth of bugs; the default is for
development, `ci` for every push.
"""

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))  # makes tests/support importable as `support`

# No deadline: tests do not time anything, and a crowded machine is not a failure.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=30, stateful_step_count=30, **_COMMON)
settings.register_profile("ci", max_examples=200, stateful_step_count=50, **_COMMON)
# 2,000 runs of 60 steps: 120,000 steps of each state machine.
settings.register_profile("deep", max_examples=2000, stateful_step_count=60, **_COMMON)
settings.load_profile(os.environ.get("MUSTER_HYPOTHESIS_PROFILE", "fast"))
