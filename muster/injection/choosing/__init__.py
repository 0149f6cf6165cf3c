"""Which profile, layers and options a pod gets.

``choice``     which fabric a pod gets
``layers``     what a fabric comes to for one pod: the layers of its profile, one over the other
``nodetable``  live nodes as groups, kept up to date node by node
"""
