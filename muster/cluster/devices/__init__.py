"""Devices of nodes: what there is, what is used, which pod has it.

``needs``         what device asks mean: shares of counters
``onenode``       arithmetic on one node: what is used, who fits
``phases``        what a pod takes whose containers run one after another
``instances``     where on a device a share stands
``phasedsearch``  which devices such a pod gets
``choice``        which devices of a node a pod gets
``sharenames``    what shares are called in plans
``dedicated``     whether a pod has a device for itself
``claims``        claims as they are stored, and published devices in their order
``kubeletgiven``  what the kubelets gave to pods
``settlement``    the claims of one node settled anew, strongest first
``table``         the devices of all nodes, live
``view``          the same, frozen
``rooms``         how many pods of a class the devices of every node can take
"""
