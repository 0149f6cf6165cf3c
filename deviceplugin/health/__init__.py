"""What readings and signals mean for a device: its state, alerts, what is told of them. Pure.

``alerts``       alerts that need a look and are no illness: a device's state stays
``causes``       why a device is not well: a fixed vocabulary, with a figure beside it
``config``       limits of health and of alerts: a section of the configuration
``ecc``          growth of corrected ECC errors, the first sign of failing memory
``gpuwatch``     one GPU: what of its readings, errors and place in the fabric makes it unwell
``incidents``    errors that happened to a GPU at a moment, and when they are over
``monitor``      the health of all devices of a node
``nicwatch``     one NIC: its ports
``reports``      reports of devices' health: changes of state, Events, the node's condition
``states``       the state of one device, and when it changes
``temperature``  temperature against the limit, with hysteresis
``xids``         what an Xid error of the NVIDIA driver means for the device, as data: ``xids.yaml``
"""
