"""Override policies of KubeAdmiral and Karmada, applied to the pods of this cluster.

``application``   the policies of one pod, applied to its raw JSON
``checks``        what of a policy can be done to no pod in no cluster: found when it is read
``document``      the raw JSON pod while policies change it
``edit``          one policy's changes to one pod
``errors``        what keeps a policy from being applied: to every pod, or to one
``guard``         what no policy may do to a pod, and what is put back after one
``imagereference``  container images in their parts, as both control planes take them apart
``jsonpatch``     one operation of a policy's JSON patch, done to the pod
``ownerobjects``  from an object that makes pods to what the chain of owners needs of it
``owners``        the chain of controllers above a pod, as far as it is known
``places``        from a path in a workload to the path in its pods
``podfields``     maps and lists of a pod that are made where a policy adds to them
``policy``        a policy of either control plane once it is read, and all of them as one value
``reader``        from an object of the API server, or a manifest, to a policy of its dialect
``schema``        the base of what policies are read into; unknown fields are errors
``selection``     which policies a pod gets, and the object of its chain that each is about
``targets``       which clusters a rule is for, in both dialects
``karmada/``      Karmada's override policies
``kubeadmiral/``  KubeAdmiral's override policies
"""
