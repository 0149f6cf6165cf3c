"""A simulated Kubernetes API server: the parts of it that a scheduler lives on.

It exists because etcd and kube-apiserver take most of a small machine; the load test and
the demonstration need the rest of the machine for what they measure. What it claims is
proven by ``tests/contract``, where one suite runs against it and against the real one.

Not simulated, on purpose: authorisation, quota, garbage collection by owner, server-side
apply, CEL (``matchConditions`` of webhooks count as matched), protobuf but in lists of nodes and
pods, conversion between versions of one resource.

``__main__``    runs a simulated API server until SIGTERM
``admission``   admission webhooks, really called over HTTPS
``builtins``    defaults and first status of the built-in resources
``churn``       work that comes and goes inside the simulated server
``discovery``   versions, groups and resources that the server has
``objects``     the life of an object: made, changed, deleted
``patches``     the three patch formats: strategic merge, merge (RFC 7386) and JSON patch (RFC 6902)
``podactions``  the verbs of a pod's life: binding, graceful deletion, eviction
``podrules``    what may be written into a pod: defaults, validation on creation and on update
``population``  objects that are there from the beginning: read from a file, not written over HTTP
``reads``       GET: one object, a list in pages, a watch
``requests``    from an HTTP request to what it is about
``resources``   what is served: built-in resources, and those that CustomResourceDefinitions add
``selectors``   label and field selectors of list and watch requests
``server``      the HTTP side
``status``      errors in the shape of ``meta/v1 Status``, as the real server words them
``store``       objects, their history, and the fan-out of changes to watchers
``watch``       one watch: from the moment the request is accepted until the stream ends
``writes``      POST, PUT, PATCH and DELETE: read, change, admit, write
"""
