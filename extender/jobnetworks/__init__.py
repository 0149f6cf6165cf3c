"""Networks of jobs: which VNI a gang gets, and what is written for it.

``assignment``  the leader's work: a network for each gang that wants one, before its release
``reclaim``     networks follow their gangs, and are taken back when these have ended
``records``     what is known of networks, and what of it a release writes into a pod
``writes``      what the leader writes, and what it then knows of each object
``pools``       pools of VNIs and the nodes' agents, as the watches show them
``addresses``   which pods have an address in a network
``members``     what a gang's members mean for its network
"""
