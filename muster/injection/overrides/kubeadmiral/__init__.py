"""KubeAdmiral's override policies.

``reader``  KubeAdmiral's OverridePolicy and ClusterOverridePolicy: ``core.kubeadmiral.io/v1alpha1``
``schema``  the fields of KubeAdmiral's policies: pkg/apis/core/v1alpha1/types_overridepolicy.go
``steps``   what KubeAdmiral's overriders do to a pod, each as upstream
"""
