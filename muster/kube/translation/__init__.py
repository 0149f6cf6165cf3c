"""From wire objects to values and events of the cluster model.

``translate``              wire objects become events; the only place that knows both
``podclass``               pod specification → ``PodClass``
``requests``               what a pod asks for, counted as kube-scheduler counts it
``selectors``              selectors, tolerations and ports in one normal form
``serverdefaults``         what the API server fills in when a pod is created
``limitranges``            what a namespace's LimitRanges give to containers
``serveradditions``        what it adds to one from objects that Muster does not read
``volumes``                what a pod's volumes say about where it may run
``firmmarks``              whether a pod's owner says that it never gives way
``planannotation``         the annotation ``muster.dev/plan``, and the pin
``planseal``               whether Muster wrote a plan, and for whom
``allocationsannotation``  the annotation ``muster.dev/node-allocations``
"""
