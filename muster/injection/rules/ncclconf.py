"""NCCL's settings as a file: the annotation, the volume that shows it, the mount. Pure.

::

    annotation muster.dev/nccl-conf ──(downward API)──► /etc/nccl.conf ──► every process in the
    container, those that sshd and mpirun start included, which see none of the pod's variables

NCCL reads ``NCCL_CONF_FILE`` (else ``~/.nccl.conf``), then ``/etc/nccl.conf``, and overwrites no
variable that is set (NVIDIA/nccl src/misc/param.cc): the user wins in three ways. The file comes
from the pod itself, so that no ConfigMap has to be in every namespace, and the downward API is
allowed at every Pod Security level. Only ``NCCL_*`` is read from it; other libraries need
variables. A file mounted by ``subPath`` is never refreshed, and a pod's annotation is its own.
"""

from collections.abc import Mapping
from typing import Final

from muster.injection.patching.additions import Downward, DownwardFile, FieldRef, Mount, Volume
from muster.kube import names

ANNOTATION: Final = names.NCCL_CONF
PATH: Final = "/etc/nccl.conf"
VOLUME: Final = "muster-nccl-conf"
PREFIX: Final = "NCCL_"
_FILE: Final = "nccl.conf"


def text(env: Mapping[str, str]) -> str:
    """Return the file for those of ``env`` that NCCL reads, in their order; "" for none."""
    return "".join(f"{name}={value}\n" for name, value in env.items() if name.startswith(PREFIX))


def rest(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the file cannot carry."""
    return {name: value for name, value in env.items() if not name.startswith(PREFIX)}


def volume() -> Volume:
    """Return the volume that shows the annotation as a file."""
    field = FieldRef(field_path=f"metadata.annotations['{ANNOTATION}']")
    return Volume(
        name=VOLUME, downward_api=Downward(items=(DownwardFile(path=_FILE, field_ref=field),))
    )


def mount() -> Mount:
    """Return where containers see it."""
    return Mount(name=VOLUME, mount_path=PATH, sub_path=_FILE, read_only=True)
