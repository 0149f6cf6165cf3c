"""A cluster on loopback: the real control plane, stand-ins for it, and what judges Muster.

``client/``        a client of the API server that shares no code with Muster's own
``controlplane/``  the real control plane on loopback: built once, started for each test
``deployment/``    Muster, its replicas and kwok, started beside a control plane
``oracles/``       what must hold, checked without the code that is checked
``standins/``      stand-ins for programs that a machine is too small for
"""
