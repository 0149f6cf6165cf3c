"""The shared model of one cluster. Pure: the standard library and numpy, nothing else.

Events go in (``muster.cluster.events``), effects come out (``muster.cluster.effects``), and
``muster.cluster.state.ClusterState.apply`` is the only function that changes anything.
"""
