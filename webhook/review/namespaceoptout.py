"""Who may take a namespace out of Muster's hands: the label ``muster.dev/managed``.

In a namespace that says "false" there no pod is gated, queued or injected. Where the configuration
names groups (``trusted.optOutGroups``), only they may set, change or remove the label; without,
whoever may label namespaces may, as with any label. The API server calls for namespaces only where
that label changes (``condition``), so a webhook that is down holds up nobody else: the rule fails
closed, or an outage would open what it guards.
"""

from collections.abc import Iterator
from typing import Final

from muster.kube import names, wire
from webhook.review.validation import ValidationRules
from webhook.review.wire import UserInfo

RESOURCE: Final = ("", "namespaces")


def problems(
    new: wire.Namespace, old: wire.Namespace | None, user: UserInfo, rules: ValidationRules
) -> Iterator[str]:
    """Yield what is wrong with creating ``new``, or with updating ``old`` to it."""
    before = old.metadata.labels.get(names.MANAGED) if old is not None else None
    after = new.metadata.labels.get(names.MANAGED)
    allowed = rules.is_muster(user) or not rules.opt_out_groups.isdisjoint(user.groups)
    if after != before and rules.opt_out_groups and not allowed:
        groups = ", ".join(sorted(rules.opt_out_groups))
        yield (
            f"metadata.labels[{names.MANAGED}]: may not be set, changed or removed by user "
            f'"{user.username}": ask a member of {groups}'
        )


def condition() -> str:
    """Return the CEL expression of requests that change the label."""
    label = '{0}.metadata.?labels[?"' + names.MANAGED + '"].orValue("")'
    before = f'(oldObject == null ? "" : {label.format("oldObject")})'
    return f"{label.format('object')} != {before}"
