"""Serves resources to the kubelet: sockets, registration, gRPC. Knows nothing of GPUs.

``drift``         compares Node.status.allocatable with what the kubelet was shown
``fallback``      a choice that is always valid, for when the better one fails
``inotify``       calls back when files come and go in folders, by the kernel's inotify(7)
``lifecycle``     what the server of one resource does next, from what it sees
``listing``       ListAndWatch: one list, any number of readers, many changes in one message
``registration``  registers a served socket with the kubelet
``resource``      serves one resource and registers it with the kubelet until cancelled
``servers``       the servers of all resources of a node: as many as there are resources at the time
``service``       the device plugin API of one resource, by gRPC
``sockets``       Unix sockets in the kubelet's folders
``wire``          our values as messages of the device plugin API, refusals as gRPC statuses
"""
