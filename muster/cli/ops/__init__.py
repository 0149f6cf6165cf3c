"""What the operator's commands do, apart from their flags: loaded when one of them runs.

``issuing``   an authority and certificates, as files and as Secrets
``networks``  isolated networks as the API server has them
``ungating``  lifts Muster's gate from pods that are chosen
"""
