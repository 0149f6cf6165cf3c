"""Which devices a pod was planned to get, and which ones the kubelet gave it.

``handshake``     answers the kubelet so that pods get the devices of their plan
``holders``       asks the kubelet every few seconds which container has which devices
``nodepods``      the pods of this node from wire objects, in the order they came
``podresources``  a client of the kubelet's pod-resources API: which container has which devices
"""
