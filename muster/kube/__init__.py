"""The only code that talks to the Kubernetes API server, and the wire types it speaks.

``leading/``      leader election by a Lease
``reviews``       who a token belongs to and what its owner may do
``client``        typed verbs over the transport
``firstlist/``    first lists of nodes and pods, read by columns
``watching/``     list and watch
``changes``       what a watch reports: upserted, gone, synced
``kinds/``        kinds of other API groups
``writing/``      what is written to pods
``http/``         connections, credentials, retries and the leader's fence
``resources``     the resources that Muster reads and writes, and their paths
``translation/``  from wire objects to events of the model
``errors``        what can go wrong between Muster and the API server
``wire``          core objects as they travel
``wirestorage``   volumes, claims and attach limits as they travel
``quantity``      quantities, read exactly
``names``         labels, annotations and gates
"""
