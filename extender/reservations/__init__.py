"""Room that is held for the members of a gang before its pods exist.

``reservations``     all reservations: made, used by pods, given up
``expectedrows``     the rows in the state of pods that do not exist
``suspendedjobs``    jobs that Muster suspended: resumed when they have room
``suspendedrows``    the rows of one such job
``rowroom``          puts these into the state, and passes their room on
``ownedobjects``     the JobSets of TrainJobs and the RayClusters of RayJobs, joined with these
``priorityclasses``  the priority that pods of a template will have, and which never give way
``eligibility``      for which gangs room can be reserved
``arrivalrate``      how fast the members of a gang arrive, as measured lately
``route``            ``POST /v1/reservations``: the request of the webhook
"""
