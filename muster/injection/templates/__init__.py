"""Injection into objects that make pods.

``completion``  injection into the templates of an object that makes pods
``manifests``   pods and pod templates in any manifest, wherever its kind keeps them
``trainjob``    Kubeflow's TrainJob, with its template in a runtime
"""
