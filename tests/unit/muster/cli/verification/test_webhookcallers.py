"""What `muster verify` says of reservations: only for an API server that shows who it is."""

import msgspec
import pytest

from muster.cli.verification.finding import CheckLevel
from muster.cli.verification.webhookcallers import WebhookCallers, judge

ASKING = "reservations: {url: 'https://muster-extender'}"
SHOWING = "callers: {required: false, tokenFile: /etc/muster/callers/token}"


@pytest.mark.parametrize(
    ("lines", "has_secret", "level", "says"),
    [
        ((), None, CheckLevel.OK, "reservations is not configured"),
        ((ASKING,), True, CheckLevel.WARNING, "callers is missing, so anybody could ask"),
        ((ASKING, SHOWING), False, CheckLevel.WARNING, "Secret muster-webhook-callers does not"),
        ((ASKING, SHOWING), None, CheckLevel.OK, "reserves for an API server"),
        ((ASKING, SHOWING), True, CheckLevel.OK, "reserves for an API server"),
    ],
)
def test_reservations_without_anybody_who_shows_who_it_is_are_a_warning(
    lines: tuple[str, ...], *, has_secret: bool | None, level: CheckLevel, says: str
) -> None:
    config = msgspec.yaml.decode("\n".join(lines) or "{}", type=WebhookCallers)
    found = judge(config, has_secret=has_secret)
    assert found.level is level
    assert says in found.text
