"""The policies that the API server can carry out itself while no webhook answers.

``cel``          Common Expression Language, written out
``differences``  what the policies cannot do, listed for the person who installs them
``gate``         Muster's gate and the scheduler's name, as CEL
``guard``        what is refused, and what is warned about, as CEL
``matchedpods``  which pods are meant, as CEL
``mutations``    additions as CEL: one mutation for each thing that is added
``policies``     the admission policies themselves, and their bindings
``staticpart``   what a cluster adds whatever its nodes look like
"""
