"""Pod Security: only what the namespace's enforced level allows is added.

The API server validates Pod Security *after* webhooks, so an addition can turn an admissible pod
into a refused one. What is not allowed is left out, with a warning for the author.

Source: Kubernetes documentation, Pod Security Standards: baseline forbids the host's namespaces,
hostPath, privileged containers and capabilities beyond the runtime's defaults; restricted also all
capabilities but NET_BIND_SERVICE, volumes that are none of the core kinds, and containers without a
tight context.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from muster.injection.patching.additions import Additions, ContainerAdditions, Sidecar, Volume

LABEL: Final = "pod-security.kubernetes.io/enforce"
_BASELINE: Final = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD",
    "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip


class PodSecurityLevel(StrEnum):
    """The levels, loosest first."""

    PRIVILEGED = "privileged"
    BASELINE = "baseline"
    RESTRICTED = "restricted"


_WORDS: Final = frozenset(PodSecurityLevel)


def level_of(namespace_labels: Mapping[str, str]) -> PodSecurityLevel:
    """Return what a namespace enforces; an unknown word counts as the strictest, as upstream."""
    word = namespace_labels.get(LABEL, PodSecurityLevel.PRIVILEGED)
    return PodSecurityLevel(word) if word in _WORDS else PodSecurityLevel.RESTRICTED


def allowed(additions: Additions, level: PodSecurityLevel) -> Additions:
    """Return what of the additions a level allows, with a warning that names the rest."""
    if level is PodSecurityLevel.PRIVILEGED:
        return additions
    volumes = tuple(v for v in additions.volumes if v.host_path is None)
    gone = {v.name for v in additions.volumes} - {v.name for v in volumes}
    sidecars = tuple(s for s in additions.sidecars if _is_plain(s, gone, level))
    containers = tuple((place, _within(c, gone, level)) for place, c in additions.containers)
    left = replace(
        additions, containers=containers, volumes=volumes, sidecars=sidecars, host_network=False
    )
    missing = left_out(additions, left)
    if not missing:
        return additions
    text = f"{additions.source}: the namespace enforces {level}: left out {', '.join(missing)}"
    return replace(left, warnings=(*additions.warnings, text))


def _within(
    wanted: ContainerAdditions, gone: set[str], level: PodSecurityLevel
) -> ContainerAdditions:
    known = _BASELINE if level is PodSecurityLevel.BASELINE else frozenset({"NET_BIND_SERVICE"})
    return replace(
        wanted,
        mounts=tuple(mount for mount in wanted.mounts if mount.name not in gone),
        capabilities=tuple(c for c in wanted.capabilities if c in known),
        privileged=False,
    )


def _is_plain(sidecar: Sidecar, gone: set[str], level: PodSecurityLevel) -> bool:
    """Return whether a container may be added; restricted wants a context none of ours has."""
    context = sidecar.security_context
    added = context.capabilities.add if context and context.capabilities else ()
    return (
        level is PodSecurityLevel.BASELINE
        and not (context and context.privileged)
        and _BASELINE.issuperset(added)
        and not any(mount.name in gone for mount in sidecar.volume_mounts)
    )


def left_out(wanted: Additions, left: Additions) -> list[str]:
    """Return the names of what ``left`` lacks of ``wanted``, each once."""
    found = ["hostNetwork"] if wanted.host_network else []
    kept: tuple[Volume | Sidecar, ...] = (*left.volumes, *left.sidecars)
    names = {part.name for part in kept}
    wished: tuple[Volume | Sidecar, ...] = (*wanted.volumes, *wanted.sidecars)
    found += [part.name for part in wished if part.name not in names]
    for (_, before), (_, after) in zip(wanted.containers, left.containers, strict=True):
        found += [c for c in before.capabilities if c not in after.capabilities]
        found += ["privileged"] if before.privileged else []
    return list(dict.fromkeys(found))
