"""Room that is held for the members of a gang before its pods exist.

``reservations``  all reservations: made, used by pods, given up
``expectedrows``  the rows in the state of pods that do not exist
``priorityclasses`` the priority that pods of a template will have
``suspendedrows`` the rows of one such job
``suspendedjobs`` jobs that Muster suspended: resumed when they have room
``eligibility``   for which gangs room can be reserved
``arrivalrate``   how fast the members of a gang arrive, as measured lately
``route``         ``POST /v1/reservations``: the request of the webhook
"""
