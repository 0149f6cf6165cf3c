"""Leader election by a Lease.

``election``  what one candidate decides; pure
``elector``   carries out what ``election`` decides
``lease``     the object that the election is held on
"""
