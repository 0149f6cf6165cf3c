"""The longest run time of a gang where a controller, or the kubelet, ends it at a deadline.

A deadline counts least: Muster's own key and Kueue's label go before it. A controller counts it
from the start of its object, the kubelet from the pod's: both at about the moment, or before it,
when the gang has its minimum.

They count anew when a suspended object is resumed, so one that waits suspended has all of its time:
kubernetes pkg/controller/job/job_controller.go; training-operator v1.9 pkg/controller.v1/common/
job.go (``ReconcileJobs``); mpi-operator v0.6 pkg/controller/mpi_job_controller.go
(``updateMPIJobStatus``); ray-operator v1.5 controllers/ray/rayjob_controller.go
(``initRayJobStatusIfNeed``).
"""

from dataclasses import replace

from muster.cluster.specs.gangspec import GangSpec
from muster.workloads.keys.userkeys import LONGEST_RUN_S


def within_deadline(spec: GangSpec, seconds: int | None, field: str) -> GangSpec:
    """Return ``spec`` with a deadline as its longest run time, unless its user named one.

    ``seconds``: ``None`` or 0 for no deadline; more than the longest run time that a user may name
    counts as that. ``field``: where it is written.
    """
    if not seconds or spec.max_run_time is not None:
        return spec
    if seconds < 0:
        problem = f'{field}: "{seconds}" is not allowed: 0 or more seconds'
        return replace(spec, problems=(*spec.problems, problem))
    written = (*spec.written, ("max_run_time", field))
    return replace(spec, max_run_time=float(min(seconds, LONGEST_RUN_S)), written=written)
