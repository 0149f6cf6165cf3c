"""Queues as each dialect writes them: one file per dialect reads its objects.

::

    object ──► QueueReading: queues for the tree ──► muster.cluster.quota
                             who names which queue ──► how a gang finds its own
                             what is wrong, what is not obeyed ──► a condition on the object

Readers are pure: they look at one object, or at one file, and never at the cluster. What an object
says of others (a parent that is missing, a cycle) is found in the tree.

``reading``       what one object says about queues
``muster``        Queue of Muster itself
``preemption/``   who may make whom give way, dialect by dialect
``kueue``         ClusterQueue, Cohort, LocalQueue, ResourceFlavor, WorkloadPriorityClass
``volcano``       Queue of Volcano
``kai``           Queue of KAI
``averages/``     what queues used on average and their last runs, as their statuses have it
``yunikorn``      queues.yaml of YuniKorn
``yamltext``      a YAML text as values that know where they stand
``elasticquota``  ElasticQuota of scheduler-plugins
``koordinator``   ElasticQuota of Koordinator
``amounts``       quantities of a quota as whole numbers of the model's units
``findings``      what a reader finds wrong, and what is not obeyed
``registry``      which kinds of objects describe queues, and who reads them
``describedqueues``  queues as the model has them, from objects as they change
``catalogue``     all queues of a cluster, put together from what its objects say
``sight``         what a queue's status is made of
``kueuestatus``   the statuses of Kueue's queues
``statuses``      the statuses of queue objects, by kind
``statusmeta``    who wrote an object's status last
``rivals``        what several sources say of the same thing: the oldest is right
"""
