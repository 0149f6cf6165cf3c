"""The one replica that plans and writes.

``term``       the way of a replica into leading, and out of it
``candidacy``  what a replica needs to take part in the election
``ownpod``     what a replica writes on its own pod: its mark, and the label of the Service
"""
