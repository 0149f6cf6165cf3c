"""What pods ask of devices, and what nodes offer, by resource name.

``accelerators``    which extended resources are accelerators: ``accelerators.yaml``, read once
``containertimes``  when the containers of a pod have the devices that they ask for
``deviceasks``      pod → what it asks of devices, and what in that contradicts itself
``devicenames``     names, units and meanings of shared devices
``mig``             MIG cards: which profiles a product has and where their instances stand
``nodedevices``     Node → its devices, from labels and allocatable
"""
