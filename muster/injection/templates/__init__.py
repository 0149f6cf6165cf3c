"""Injection into objects that make pods.

``completion``      injection into the templates of an object that makes pods
``decodingerrors``  errors of decoding, with the path of the field in the user's object
``manifests``       pods and pod templates in any manifest, wherever its kind has them
``trainjob``        Kubeflow's TrainJob, with its template in a runtime
"""
