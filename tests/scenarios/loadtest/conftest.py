"""The load test as users run it; what needs a real control plane runs on one minor."""

from support.apiservers import minors
from support.machine import commandline

pytest_generate_tests = minors.pytest_generate_tests
minor = minors.minor
refusal = commandline.refusal
