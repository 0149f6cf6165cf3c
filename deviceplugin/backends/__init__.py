"""Where devices are found: NVML in a child process, sysfs, or a simulated machine."""
