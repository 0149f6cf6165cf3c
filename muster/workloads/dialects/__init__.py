"""One file per dialect: a wire object in, a gang out.

``batchjob``         Indexed batch Jobs: the pods of one Job are a gang
``coscheduling``     the coscheduling plugin's dialect (kubernetes-sigs/scheduler-plugins)
``jobset``           JobSets (jobset.x-k8s.io/v1alpha2): all pods of all child Jobs are one gang
``kai``              KAI Scheduler's PodGroups (scheduling.run.ai/v2alpha2)
``koordinator``      Koordinator's gangs (apis/extension/coscheduling.go, network_topology.go)
``kubeflow``         Kubeflow Trainer v1: PyTorchJob and the kinds beside it
``kueue``            Kueue's groups of plain pods (pkg/controller/jobs/pod/constants/constants.go)
``leaderworkerset``  LeaderWorkerSets: each leader with its workers is a gang
``lightweight``      the first coscheduling plugin's labels, before there were PodGroups
``muster``           Muster's own dialect: the label ``muster.dev/gang`` and the keys beside it
``native``           Kubernetes' own groups (scheduling.k8s.io; KEP-4671, KEP-5832, KEP-5732)
``podgroups``        what the PodGroups of all schedulers have in common, as one builder of gangs
``ray``              Ray on Kubernetes: the head and the workers of a RayCluster are one gang
``single``           a managed pod that no dialect claims: a gang of one
``spark``            Spark on Kubernetes: the executors of one application, near each other
``volcano``          Volcano's PodGroups (scheduling.volcano.sh/v1beta1)
``volcanojob``       Volcano's Jobs (batch.volcano.sh/v1alpha1): all pods of a Job are one gang
``yunikorn``         YuniKorn's applications with task groups (docs/user_guide/gang_scheduling.md)
"""
