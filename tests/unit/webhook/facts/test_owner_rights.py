"""What the shipped role lets the webhook ask, and what it has to ask for override policies."""

from itertools import product
from pathlib import Path

from support.machine import quickyaml

from muster.injection.overrides.places import KINDS
from webhook.facts.policies import RESOURCES

RBAC = Path(__file__).parents[4] / "manifests" / "rbac" / "muster.yaml"
ROLE = next(
    document
    for document in quickyaml.load_all(RBAC.read_text(encoding="utf-8"))
    if document["kind"] == "ClusterRole"
    and document["metadata"]["name"] == "muster-webhook-overrides"
)
GRANTED = {
    (group, resource, verb)
    for rule in ROLE["rules"]
    for group, resource, verb in product(rule["apiGroups"], rule["resources"], rule["verbs"])
}


def test_owners_of_every_kind_with_known_templates_can_be_read() -> None:
    wanted = {(group, f"{kind.lower()}s", "get") for group, kind in KINDS}
    assert wanted <= GRANTED


def test_policies_can_be_watched_and_nothing_is_ever_written() -> None:
    wanted = {(r.group, r.plural, verb) for r in RESOURCES for verb in ("list", "watch")}
    assert wanted <= GRANTED
    assert {verb for _, _, verb in GRANTED} == {"get", "list", "watch"}
