"""Fabric and cluster profiles as data: read, checked and merged.

``catalog``         profiles by name: those of this package, and a cluster's own beside them
``clusterprofile``  ``ClusterProfile``, Muster's own small CRD
``crd``             JSON schemas and CustomResourceDefinitions of the profiles, from their structs
``digest``          a short digest of a profile, which changes with it
``fabric``          the schema of a fabric profile: what pods need on one kind of network
``fabriccheck``     what can be wrong with a fabric profile beyond its schema: pure, a line for each
``mergedprofile``   one layer of a profile over another
``reservednames``   names that frameworks own: no profile may set them, whatever it is for
``tiers``           tiers, spot capacity and accelerator taints
"""
