"""What admission adds to a pod so that it fits its cluster: pure, from pod and facts to patch.

``errors``      errors of profiles, of manifests and of patches
``nodegroups``  what live nodes have, as far as injection asks
``podview``     a pod as injection reads it: what is there already, so that nothing of it is lost
``run``         the whole of injection: every rule in its order, one draft, one patch
``subject``     one pod and everything that is known about where it will run
``checks/``     findings for a pod's author, one file per check
``choosing/``   which profile, layers and options a pod gets
``overrides/``  override policies of KubeAdmiral and Karmada, applied to the pods of this cluster
``patching/``   from what a pod is to get to the JSON Patch that gives it
``policies/``   the policies that the API server can carry out itself while no webhook answers
``profiles/``   fabric and cluster profiles as data: read, checked and merged
``rules/``      what a pod gets, one file per rule
``templates/``  injection into objects that make pods
"""
