"""Room that is held for the members of a gang before its pods exist.

``reservations``  all reservations: made, used by pods, given up
``eligibility``   for which gangs room can be reserved
``arrivalrate``   how fast the members of a gang arrive, as measured lately
``route``         ``POST /v1/reservations``: the request of the webhook
"""
