"""The device plugin: shows a node's devices to the kubelet and hands out the chosen ones.

``__main__``      the device plugin as a program
``config``        the device plugin's configuration file, with a default for everything
``containers``    what containers get with their devices, and the CDI specs for it
``deviceinfo``    device-info files: what Multus passes on about a PCI function
``errors``        the errors of the device plugin, by what a caller does about them
``listeners``     the listeners of an event
``metrics``       the plugin's own metrics, of closed sets of labels
``node``          all that the plugin knows of its node
``plugin``        connects backend, state, servers and exporter
``process``       the life of the device plugin's process
``recutting``     cuts this node's GPUs as its label asks; ``mig`` decides, this carries it out
``sources``       which backends a node has, by its configuration
``stocks``        turns what is advertised into stocks of offers for the handshake
``wiring``        puts the device plugin together, by its configuration
``allocation/``   which devices a container gets, and with which settings
``backends/``     where devices are found: NVML in a child process, sysfs, or a simulated machine
``cdi/``          CDI specs: what a container runtime does for each device's name
``cluster/``      what the device plugin reads from the API server and writes to its Node
``exporter/``     metrics of the node's devices in DCGM's names, and the plugin's own, over HTTP
``handshake/``    which devices a pod was planned to get, and which ones the kubelet gave it
``health/``       decides the state of each device from readings and signals
``mig/``          how to cut GPUs into MIG instances, and the steps that lead there
``model/``        what a node has and what happens to it, as plain values
``publication/``  what a Node shows of its devices: labels, annotations, conditions
``resources/``    which resources a node has: names, MIG strategies, sharing, pools of NICs, ids
``serving/``      what the kubelet sees of a resource
``tools/``        commands for a person on the node; no part of the running device plugin
"""
