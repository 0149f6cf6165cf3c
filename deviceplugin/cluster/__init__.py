"""What the device plugin reads from the API server and writes to its Node.

``allocationsnote``  the annotation that lists which devices each pod of the node has
``incluster``        the parts of the plugin that need an API server
``nodeconfig``       a folder of NVIDIA's configuration files, of which a label chooses one
``nodeevents``       Events about this node and its pods
``nodeobject``       watches this node's Node object and writes to it
``nodesettings``     has the node advertise by the configuration that its label chooses
``nvidiaconfig``     reads NVIDIA's configuration files (``deviceplugin.resources.nvidia``)
``podfeed``          the watch of the node's pods, at the API server or at the extender
``position``         reads a node's place in the network: the operator's file, and LLDP
``publisher``        decides when the plugin's text on the Node changes
"""
