"""From an admission review to its answer.

``admission``        one admission request in, one verdict out: which resource goes to which rule
``defectgate``  a new pod that a reader failed on: a gate or a refusal, never a pass
``gate``             what admission changes on a pod: pure, from pod to JSON Patch
``groupobjects``     PodGroups and Workloads: objects that describe gangs and hold no pods
``injectionmode``    injection as the server runs it: on, or in shadow, and what is counted of it
``jobs``             objects that make pods, as they are created
``jobtemplates``     the pod templates of training jobs of other projects' controllers
``namespaceoptout``  the label ``muster.dev/managed`` of namespaces, and who may set it
``queueguard``       what is said of the queue that a new pod or job names
``reservedplaces``   pods made with a reserved place in them
``sharedanswers``    pods that are alike get one decision
``suspensions``      jobs whose queue has whole jobs wait
``templates``        the pod templates of the objects that make pods, wherever their kind keeps them
``validation``       what admission refuses: pure, from request to findings
``wire``             ``admission.k8s.io/v1 AdmissionReview``, read and written
"""
