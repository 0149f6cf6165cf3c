"""KubeAdmiral's override policies."""
