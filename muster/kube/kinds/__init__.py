"""Kinds of other API groups that Muster reads or writes.

``discovery``     where objects of a kind live
``jobnetworks``   Muster's own three kinds of isolated networks
``multus``        the annotation that names a pod's further networks
``provisioning``  ProvisioningRequests of the Cluster Autoscaler
"""
