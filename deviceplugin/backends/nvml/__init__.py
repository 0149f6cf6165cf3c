"""NVIDIA GPUs as NVML reports them, read by a child process that may be killed."""
