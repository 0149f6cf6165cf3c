"""Stand-ins for programs that a machine is too small for; contract suites compare them.

``faultproxy``        an HTTP proxy before an API server, with faults on demand
``kubelet``           a kubelet stand-in for all nodes: it reports that pods run and end
``packers``           JSON objects → protobuf, many and alike, by functions made once
``packing``           JSON objects → protobuf, as the API server packs them
``persistentclient``  a client that asks again until its API server is back
``reflector``         list, then watch for ever: what every stand-in needs to follow a resource
``simulated``         a simulated control plane with the interface of the real one
``apiserver/``        a simulated Kubernetes API server: the parts of it that a scheduler lives on
``scheduler/``        a stand-in for kube-scheduler: the path that a pod and an extender see of it
"""
