"""What queues used on average, as it stands in the statuses of their objects.

``fields``      the fields, read and as they should be
``quantities``  averages as quantities, and back
"""
