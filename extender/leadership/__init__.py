"""The one replica that plans and writes.

``term``       how a replica begins to lead, and how its term ends
``candidacy``  what a replica needs to take part in the election
``ownpod``     what a replica writes on its own pod: its mark, and the label of the Service
"""
