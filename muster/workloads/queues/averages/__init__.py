"""What queues remember, as it stands in the statuses of their objects: past use and past runs.

``fields``      the fields, read and as they should be
``quantities``  averages as quantities, and back
``writtenruns`` the last runs of a queue
"""
