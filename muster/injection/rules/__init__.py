"""What a pod gets, one file per rule: each from a subject to additions, knowing of no other.

``datasets``       data sets by annotation: ``muster.dev/dataset-NAME: SOURCE:/where/to[:ro]``
``fabric``         the pod's fabric: what its profile adds, container by container
``fabricamounts``  how much of a resource, and how many interfaces, a container gets on its fabric
``namespaced``     a RuntimeClass and a PriorityClass by namespace
``ncclconf``       NCCL's settings as a file: the annotation, the volume that shows it, the mount
``ranks``          the environment of torchrun and its like, where no framework sets it
``sharedmemory``   a memory volume in place of the runtime's 64 MiB of shared memory
``spot``           capacity that the provider may take back
``taints``         tolerations for taints that only mark accelerators
``tier``           the tier of accelerators that a pod asks for by kind of work or by name
``tolerations``    tolerations that every accelerator pod of a cluster needs (``spec.tolerations``)
"""
