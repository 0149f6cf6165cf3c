"""NVIDIA GPUs as NVML reports them, read by a child process that may be killed.

``backend``       NVIDIA's GPUs by NVML, which runs in a child process that may hang and be killed
``calls``         calls of NVML in the child process, with a heartbeat
``child``         the child process with NVML, which may be killed
``cut``           cuts a GPU into MIG instances by NVML, in the child process
``errors``        what NVML's refusals mean for the operator of a node
``events``        events of the driver, in the child process
``inventory``     from NVML's facts to an inventory
``link``          one child process with NVML, seen from the plugin: from its start to its end
``machineview``   reads a machine through NVML, in the child process; concludes nothing
``measurements``  readings of every GPU by NVML, in the child process
``migfacts``      reads one GPU's MIG instances, in the child process
``probe``         a second child that looks once, whether a lost GPU is back
``profiles``      names of MIG profiles, from what a GPU reports of itself
``readings``      from NVML's measurements to readings
``sysfs``         facts of GPUs from /sys, /proc and /dev
``vgpu``          the hypervisor's driver, as a vGPU's PCI configuration space reports it
``wire``          messages between the plugin and the child process: msgpack in frames
"""
