"""Where devices are found: NVML in a child process, sysfs, or a simulated machine.

``amd``           AMD GPUs, from the KFD topology and their PCI devices
``backend``       the interface of every backend
``jointbackend``  several backends as one, so that a node has one inventory
``kfd``           the KFD topology of ROCm's kernel driver: AMD's GPUs and their XGMI links
``pci``           PCI devices as sysfs shows them: small files that may be missing, empty or broken
``rdma``          RDMA devices, as sysfs shows them
``sysfs``         a backend over sysfs: read in threads, and read again when its pulse changes
``vdpa``          vDPA devices, and the kernel's side of virtio, as sysfs shows them
``nvml/``         NVIDIA GPUs as NVML reports them, read by a child process that may be killed
``simulated/``    a machine that exists in a file only
"""
