"""Published traces and fleets, read or made from published figures.

``fleet``           fleets of hosts
``lublin``          jobs of a parallel computer, made by Lublin's and Feitelson's model
``openb``           the openb trace and the protocol of its published results
``openb_bound``     the ceiling of a trace: the configuration LP over its fractional requests
``openb_jobs``      the tasks of the openb trace as jobs over time, one pod each
``openb_rules``     the rules that the trace's results were published with
``openb_variants``  the trace's published variants, made again from its task list
``publisheddata``   the folder with published data, which the user names
``trace``           Jobs over time
``gangtrace/``      a trace of jobs replayed on a fleet, in virtual time
"""
