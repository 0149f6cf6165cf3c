"""How long a test waits for real programs before something must be wrong with them.

A wait ends as soon as what it waits for is there, and at once where its program has ended without
being told to. So only a run that is red in any case waits this long, and it may be long.

Programs come back late to what they could not do at once. A kubelet tries again to start a pod
after 10 to 15 s (workerBackOffPeriodJitterFactor and backOffPeriod in pkg/kubelet), to write a
status that the API server refused after up to 10 s (syncPeriod in pkg/kubelet/status), and it is
refused until the Node authoriser has seen the pod; a client's list begins anew after up to 30 s
(NewReflector in client-go). On a crowded machine several of these come one after the other.
"""

from typing import Final

PATIENCE_S: Final = 120.0  # a single wait
TEST_S: Final = 600.0  # a whole test with real programs: several waits, and what it starts first
