"""`muster certificates --check`: two Secrets that fit, and each way in which they may not."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.cli.ops import issuing
from muster.cli.ops.certificatepair import CertificatePair, SecretData

DAYS = 30
NEXT = timedelta(days=1)


def data(secret: issuing.IssuedObject) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in secret["data"].items()}


def issued(namespace: str = "muster-system") -> tuple[dict[str, bytes], dict[str, bytes]]:
    made = issuing.make(namespace, (), DAYS)
    return data(made.extender_secret), data(made.scheduler_secret)


FIRST, SECOND, ELSEWHERE = issued(), issued(), issued("elsewhere")


def problems(
    extender: SecretData | None, scheduler: SecretData | None, *, after: timedelta = timedelta()
) -> list[str]:
    pair = CertificatePair("muster-system", "server", "client", extender, scheduler)
    return pair.problems(datetime.now(UTC) + after, NEXT)


def test_what_is_made_together_fits() -> None:
    assert problems(*FIRST) == []


@pytest.mark.parametrize(
    ("extender", "scheduler", "said"),
    [
        (None, FIRST[1], "Secret muster-system/server: is missing"),
        (FIRST[0], {}, "Secret muster-system/client: lacks tls.crt, tls.key, ca.crt"),
        (FIRST[0] | {"tls.key": SECOND[0]["tls.key"]}, FIRST[1], "not the key of tls.crt"),
        (FIRST[0] | {"ca.crt": b"?"}, FIRST[1], "server: is not PEM"),
        (*ELSEWHERE, "muster-extender.muster-system.svc is needed"),
        (FIRST[0], FIRST[0], "'kube-scheduler' is needed"),
        (FIRST[0], SECOND[1], "the extender does not trust kube-scheduler"),
        (FIRST[0], SECOND[1], "kube-scheduler does not trust the extender"),
    ],
)
def test_what_does_not_fit_is_said_with_its_secret(
    extender: SecretData | None, scheduler: SecretData | None, said: str
) -> None:
    assert any(said in problem for problem in problems(extender, scheduler))


@given(st.integers(-2, 2 * DAYS))
@settings(max_examples=40)
def test_a_pair_is_anew_made_exactly_when_less_is_left_than_asked_for(days: int) -> None:
    found = problems(*FIRST, after=timedelta(days=days))
    assert (found == []) == (0 <= days < DAYS - 1)
    expected = "is valid from" if days < 0 else "expired on" if days >= DAYS else "expires on"
    assert all(expected in problem for problem in found)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("extender", "scheduler")),
            st.sampled_from(("tls.crt", "tls.key", "ca.crt")),
            st.sampled_from((b"", b"-----BEGIN", SECOND[0]["tls.crt"], SECOND[1]["ca.crt"])),
        ),
        min_size=1,
    )
)
@settings(max_examples=60)
def test_whatever_is_exchanged_in_a_pair_is_a_problem_and_no_error(
    changes: list[tuple[str, str, bytes]],
) -> None:
    sides: dict[str, dict[str, Any]] = {"extender": {**FIRST[0]}, "scheduler": {**FIRST[1]}}
    for side, key, value in changes:
        sides[side][key] = value
    assert problems(sides["extender"], sides["scheduler"])
