"""Karmada's override policies.

``reader``  Karmada's OverridePolicy and ClusterOverridePolicy: ``policy.karmada.io/v1alpha1``
``schema``  the fields of Karmada's policies: pkg/apis/policy/v1alpha1/override_types.go
``steps``   what Karmada's overriders do to a pod, each as upstream
"""
