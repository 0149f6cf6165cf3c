"""Room that is held for the members of a gang before its pods exist.

``reservations``  all reservations: given, taken up by pods, given up
``eligibility``   for which gangs room can be reserved
``arrivalrate``   how fast the members of a gang come, as was seen lately
``route``         ``POST /v1/reservations``: the question of the webhook
"""
