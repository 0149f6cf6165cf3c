"""What pods and gangs ask for, as immutable values.

``gangspec``        a gang: members, levels, slices, spares; its phases
``contradictions``  what in a gang's spec contradicts itself
``podconstraints``  a pod class: requests, affinity, taints, spread
``matching``        selectors, terms and tolerations evaluated as upstream does
``deviceasks``      what a pod class asks of single devices
``deviceshape``     what a device is, apart from its name
``learnedprices``   what scoring learned of the requests
"""
