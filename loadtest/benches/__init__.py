"""One bench per file, each run by `muster bench NAME`.

``decode_reference``  a ``filter`` that decodes everything, as extenders usually answer
``device_plugin``     the device plugin as a program, on simulated devices, real sockets
``echo``              a server of aiohttp that sends back what it gets
``filtercalls``       the extender's filter as kube-scheduler calls it
``filterverb``        latency of a plan hit, beside an echo and a reference
``hostile``           the phase of `muster bench webhook` with slow and broken clients
``kubectlmuster``     `kubectl muster gangs`, from its start to its end
``kueuerunner``       Kueue's own performance runner on Kueue, then on Muster
``model``             what the model of a cluster costs in memory and in time
``openb``             GPUs allocated on the openb trace by one rule, and how fast
``order``             who is next among many queues and gangs, and a queue that changes
``plan``              how long the decision about one gang takes, and how long its slices
``reviews``           admission reviews of a training job, as the API server sends them
``rotating``          the phase of `muster bench webhook` in which authorities change
``sustained``         a thousand pods a second, for as long as is asked, at any size
``throughput``        Pods/s beside a bare kube-scheduler, on a real control plane
``tlsload``           a client of admission that costs little: prebuilt requests over TLS
``trace``             gangs of a trace on a fleet, by several rules
``webhook``           admission reviews over TLS, beside an echo of the same server library
``coldstart/``        a running cluster as its API server would list it
``room/``             full clusters in which room is made, an exact oracle for them
``topology/``         small random topologies, an exact oracle for them
"""
