"""Which resources a node has: names, MIG strategies, sharing, pools of NICs, ids. Pure.

``advertisements``  what a node advertises, independent of health
``advertising``     from what a node has to what it advertises
``choice``          which of several configurations a node takes
``memory``          GPUs as units of memory: ``aliyun.com/gpu-mem: 12`` is 12 GiB of one GPU
``names``           names of extended resources, and ids of devices
``nvidia``          NVIDIA's configuration file, version v1, and which of its fields have an effect
``oldids``          devices that containers have by ids of earlier settings
``picking``         which devices a rule means: all, the first so many, or those of a list
``rdma``            pools of NICs: shared by many containers, or a NIC to one container
``settings``        the section of the plugin's configuration about resources
``sharing``         replicas of devices: time slices and MPS
``sriov``           pools of PCI functions, as the SR-IOV network device plugin has them
``wholedevices``    devices before they are shared
"""
