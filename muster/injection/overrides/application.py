"""The policies of one pod, applied to its raw JSON.

::

    raw pod ─► chain of owners ─► select ─► policy ─► policy ─► … ─► changed pod, operations, ledger
                                              │
                 each whole or not at all: targets, steps, guard, ``accepts`` ─► Outcome

One that fails for a pod leaves it as it was before that policy; those after it go on. What was done
is in the ledger by name, also that a policy changed nothing or failed, so that a second call on the
same pod does nothing again: appending to a command twice would be another command.
"""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from muster.injection.errors import PatchError
from muster.injection.overrides import guard
from muster.injection.overrides.document import Document
from muster.injection.overrides.edit import Edit
from muster.injection.overrides.errors import OverrideError
from muster.injection.overrides.owners import Chain, Owners, chain
from muster.injection.overrides.places import PolicySubject, place
from muster.injection.overrides.policy import Broken, OverridePolicy, Policies, PolicyName
from muster.injection.overrides.selection import ChosenPolicy, select
from muster.injection.overrides.targets import Identity
from muster.injection.patching import record
from muster.injection.patching.operations import Operation
from muster.injection.patching.pointers import decoded
from muster.injection.patching.record import InjectionRecord
from muster.kube import wire


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """What came of one policy. ``reason``: why it was not applied, empty where it was.

    ``fields``: what it changed. ``outside``: what it says that is not the pod's, in sentences.
    """

    policy: PolicyName
    fields: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    reason: str = ""

    @property
    def warning(self) -> str:
        """Return the warning for the author, "" for none."""
        return f"{self.policy} was not applied: {self.reason}" if self.reason else ""


@dataclass(frozen=True, slots=True)
class Overridden:
    """``pod``: the changed JSON, as it came where nothing was done to it.

    ``missing``: an owner that is not known, so that policies may be missing, too.
    """

    pod: bytes | msgspec.Raw
    operations: tuple[Operation, ...] = ()
    outcomes: tuple[PolicyOutcome, ...] = ()
    missing: wire.OwnerReference | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings for the author."""
        warnings = [outcome.warning for outcome in self.outcomes if outcome.reason]
        if self.missing is not None:
            warnings.append(
                f"{self.missing.kind} {self.missing.name}, which owns this pod, is not known here: "
                "override policies for it were not looked for"
            )
        return tuple(warnings)


def _anything(_pod: bytes) -> str:
    return ""


def override(
    pod: bytes | msgspec.Raw,
    meta: wire.ObjectMeta,
    namespace: str,
    cluster: Identity,
    policies: Policies,
    owners: Owners,
    accepts: Callable[[bytes], str] = _anything,
) -> Overridden | None:
    """Return the pod with its policies applied, ``None`` where none is for it.

    ``meta``: the pod's, decoded already. ``accepts``: says what is wrong with a changed
    pod, nothing where it may be so.
    """
    if not policies.concern(namespace):
        return None
    above = chain(meta, owners)
    before = meta.annotations.get(record.ANNOTATION, "")
    done = record.overridden_before(before)
    choices = [c for c in select(above, namespace, policies) if c.policy.name.source not in done]
    run = _Run(Document(decoded(pod)) if choices else None, cluster, above, meta, accepts)
    for choice in choices:
        run.take(choice)
    return run.finish(pod, before)


class _Run:
    """One pod on its way through its policies."""

    def __init__(
        self,
        document: Document | None,
        cluster: Identity,
        above: Chain,
        meta: wire.ObjectMeta,
        accepts: Callable[[bytes], str],
    ) -> None:
        self._document = document or Document(None)
        self._cluster = cluster
        self._chain = above
        self._meta = meta
        self._accepts = accepts
        self._outcomes: list[PolicyOutcome] = []
        self._done: dict[str, tuple[str, ...]] = {}
        self._failed: dict[str, str] = {}

    def take(self, choice: ChosenPolicy) -> None:
        """Apply one policy, whole or not at all."""
        policy = choice.policy
        if isinstance(policy, Broken):
            self._fail(policy.name, policy.name.source, policy.reason)
            return
        edit = Edit(self._document.copy(), self._place(choice))
        edit.document.fields.clear()
        try:
            if not self._edit(policy, edit):
                return
        except PatchError as error:
            self._fail(policy.name, policy.source, str(error))
            return
        self._document = edit.document
        fields = tuple(edit.document.fields)
        self._done[policy.source] = fields
        self._outcomes.append(PolicyOutcome(policy.name, fields, tuple(edit.outside)))

    def finish(self, pod: bytes | msgspec.Raw, ledger: str) -> Overridden | None:
        """Return what came of it all, with the ledger in the pod."""
        missing = self._chain.missing
        if not self._outcomes:
            return Overridden(pod, missing=missing) if missing is not None else None
        text = InjectionRecord(overridden=self._done, refused=self._failed).text(ledger)
        self._document.add(("metadata", "annotations", record.ANNOTATION), text)
        data = msgspec.json.encode(self._document.root)
        operations = tuple(self._document.operations)
        return Overridden(data, operations, tuple(self._outcomes), missing)

    def _edit(self, policy: OverridePolicy, edit: Edit) -> bool:
        """Return whether the policy is for this cluster; do what it says if so."""
        before, matched = self._document, False
        for index, rule in enumerate(policy.rules):
            try:
                if rule.targets(self._cluster):
                    matched = True
                    for step in rule.steps:
                        step(edit)
            except PatchError as error:
                raise OverrideError(f"overrideRules[{index}]: {error}") from error
        if not matched:
            return False
        guard.keep_mounted(before, edit.document)
        problem = self._accepts(guard.check(before, edit.document, self._selects()))
        if problem:
            raise OverrideError(f"what it makes is refused: {problem}")
        return True

    def _fail(self, name: PolicyName, source: str, reason: str) -> None:
        self._failed[source] = reason
        self._outcomes.append(PolicyOutcome(name, reason=reason))

    def _place(self, choice: ChosenPolicy) -> PolicySubject:
        return place(choice.owner, self._meta.labels, self._meta.annotations)

    def _selects(self) -> frozenset[str]:
        """Return the keys of the labels by which those above the pod find it."""
        return frozenset[str]().union(*(owner.selects for owner in self._chain.objects))
