"""Which minors of Kubernetes a test runs on: all of them where they can differ, else the newest.

A fixture or a test that takes ``minor`` runs once for each minor of its file. The conftest of its
folder imports the fixture and the hook from here.
"""

from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from loadtest.testbed.controlplane.assets import MINORS, Minor

# The newest for the rest: what breaks with a new minor breaks there. The oldest is not left alone:
# load tests and benches run on it (DEFAULT_MINOR), unless they name another.
ONE: Final[tuple[Minor, ...]] = MINORS[-1:]

DIFFERS: Final = MappingProxyType(
    {
        "integration/placement/test_main_path.py": "a gang's whole life, once on each minor",
        "integration/placement/test_preempt_real.py": "victims are deleted by other code",
        "integration/workloads/test_native_gangs.py": "Kubernetes' own gangs: another API each",
        "integration/workloads/test_native_real.py": "Kubernetes' own gangs: another API each",
        "integration/webhook/test_reviews_real.py": "the webhook's whole duty, once on each minor",
        "integration/webhook/test_policies_real.py": "v1beta1 or v1, and another CEL",
        "integration/kube/test_reads.py": "lists: encodings and order of fields",
        "integration/kube/test_watches.py": "watches: bookmarks, WatchList, what is too old",
        "integration/kube/test_writes.py": "answers to patches, Bindings and evictions",
        "integration/queueing/test_suspended_jobs_real.py": "what may change of a suspended Job",
        "integration/queueing/test_making_room_real.py": "a running Job is suspended",
        "integration/installation/test_manifests_real.py": "the schemas that manifests must meet",
        "integration/installation/test_helm_real.py": "what helm writes and waits for",
    }
)
"""Files under tests/ that run on every minor, with what can differ there.

The contract suite runs on every minor, too: kube-scheduler's queue and what it sends an extender,
lists and watches, webhooks (tests/contract/conftest.py), the kubelet's device plugin API on a real
node (tests/contract/test_kubelets.py). Of the dialects only that of Kubernetes' own gangs differs
(integration/workloads/test_dialects_real.py).
"""

_TESTS = Path(__file__).parents[2]


def of(file: Path) -> tuple[Minor, ...]:
    """Return the minors that the tests of a file run on."""
    return MINORS if file.relative_to(_TESTS).as_posix() in DIFFERS else ONE


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that needs a ``minor`` on each of its file. A hook of pytest's.

    A test that names its minors itself keeps them.
    """
    marks = metafunc.definition.iter_markers("parametrize")
    if "minor" in metafunc.fixturenames and not any("minor" in mark.args[0] for mark in marks):
        minors = of(metafunc.definition.path)
        metafunc.parametrize("minor", minors, indirect=True, scope="session")


@pytest.fixture(scope="session")
def minor(request: pytest.FixtureRequest) -> Minor:
    """Name the minor of Kubernetes that the test runs on."""
    found: Minor = request.param
    return found
