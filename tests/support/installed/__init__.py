"""Muster installed in a cluster: its programs as pods on a real node.

``images``      the image of this source tree, and kube-scheduler's
``site``        the cluster with everything in it, and what tests ask of it
``transcript``  commands of a recorded terminal, run again, and what of their output stays the same
"""
