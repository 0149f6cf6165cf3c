"""Names that frameworks own: no profile may set them, whatever it is for.

Sources: kubeflow/trainer pkg/runtime/framework/plugins/{torch,jax}; volcano pkg/controllers/
job/plugins; lws pkg/utils/pod/pod_utils.go; ai-dynamo/grove operator/api/common/constants. The
rank variables of torchrun are Muster's to set only where no framework does (``rules.ranks``).
"""

from typing import Final

EXACT: Final = frozenset({
    "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "NODE_RANK",
    "VK_TASK_INDEX", "VC_TASK_INDEX", "MPI_HOST",
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",  # the device plugin's answer
})  # fmt: skip
PREFIXES: Final = ("PET_", "JAX_", "VC_", "LWS_", "TPU_", "GROVE_", "KUBERNETES_")


def is_reserved(name: str) -> bool:
    """Return whether a framework or the kubelet owns the name of this environment variable."""
    return name in EXACT or name.startswith(PREFIXES)
