"""What a Node shows of its devices: labels, annotations, conditions. Decisions are pure.

``condition``     the node condition of the devices, as the API server takes it
``gfd``           labels of a node's GPUs, key for key as NVIDIA's GPU feature discovery writes them
``labelvalue``    text as a label's value (apimachinery validation: IsValidLabelValue)
``levels``        labels of the topology levels that a node belongs to
``lldp``          the switch behind a port, from LLDP frames (IEEE 802.1AB-2016, 8.2)
``nodecontent``   labels, annotations and condition of a Node, from its devices
``nodepatch``     the smallest patch that brings a Node to its wanted content
``nodetopology``  the annotation ``muster.dev/node-topology``
"""
