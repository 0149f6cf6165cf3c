"""What readings and signals mean for a device: its state, alerts and reports. Pure.

``alerts``       alerts: an operator should look, but the device's state does not change
``causes``       why a device is not well: a fixed vocabulary, with a figure beside it
``config``       limits of health and of alerts: a section of the configuration
``ecc``          growth of corrected ECC errors, the first sign of failing memory
``gpuwatch``     one GPU: causes from its readings, its errors and its place in the fabric
``incidents``    errors of a GPU that happened at one moment, and when they are over
``monitor``      the health of all devices of a node
``nicwatch``     one NIC: its ports
``reports``      reports of devices' health: changes of state, Events, the node's condition
``states``       the state of one device, and when it changes
``temperature``  temperature against the limit, with hysteresis
``variables``    the environment variables of NVIDIA's plugin that name Xids to ignore
``xids``         what an Xid error of the NVIDIA driver means for the device, as data: ``xids.yaml``
"""
