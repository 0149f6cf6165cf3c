"""Override policies of KubeAdmiral and Karmada, applied to the pods of this cluster."""
