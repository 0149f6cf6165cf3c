"""Isolated networks of jobs: which VNI a gang gets, and the objects of its network.

``assignment``  the leader's work: gives each gang that wants a network one before its release
``reclaim``     networks follow their gangs, and are taken back when the gangs have ended
``records``     what is known about networks, and what a release writes into a pod from it
``writes``      the leader's writes, and the objects as they are after them
``pools``       pools of VNIs and the nodes' agents, as the watches show them
``addresses``   which pods have an address in a network
``members``     what a gang's members mean for its network
"""
