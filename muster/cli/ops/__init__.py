"""The work of the operator's commands, without their flags: loaded when one of them runs.

``admissioncalls``  what kube-apiserver shows to the webhook
``certificatepair``  whether two certificates fit each other
``clustercertificates``  certificates as Secrets of the cluster, renewed in time
``draining``  marks nodes that gangs have to leave
``issuing``   an authority and certificates, as files and as Secrets
``networks``  isolated networks as the API server has them
``ungating``  lifts Muster's gate from pods that are chosen
``withdrawal``  the steps before Muster's objects are deleted, and what is left after
"""
