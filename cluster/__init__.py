"""The shared model of one cluster. Pure: the standard library and numpy, nothing else.

Events go in (``cluster.events``), effects come out (``cluster.effects``), and
``cluster.state.ClusterState.apply`` is the only function that changes anything.
"""
