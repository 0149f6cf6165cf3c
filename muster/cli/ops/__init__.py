"""The work of the operator's commands, without their flags: loaded when one of them runs.

``admissioncalls``  what kube-apiserver shows to the webhook
``issuing``   an authority and certificates, as files and as Secrets
``networks``  isolated networks as the API server has them
``ungating``  lifts Muster's gate from pods that are chosen
"""
