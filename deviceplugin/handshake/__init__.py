"""Which devices a pod was planned to get, and which ones the kubelet gave it."""
