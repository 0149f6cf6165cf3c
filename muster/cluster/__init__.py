"""The shared model of one cluster. Pure: the standard library and numpy, nothing else.

Events go in, effects come out, and ``ClusterState.apply`` is the only function that changes
anything.

``state``       one cluster: events applied, effects returned, snapshots taken
``overlay``     a snapshot with some pods gone, moved or added: what if
``validation``  every sum computed anew and compared; for tests
``dump/``       a state as a file, and a file as a state
``handlers/``   what each kind of event changes
``model``       all tables, and the arithmetic that updates their sums
``snapshot``    the frozen cluster that decisions are made on
``devices/``    devices of nodes: what there is, what is used, which pod has it
``tables/``     nodes, pods, gangs, holds, budgets, topology
``claims``      what asks for quota by itself, without pods in the model
``events``      everything that can happen to a cluster
``effects``     everything that follows from an event
``columns/``    how a million rows are stored
``specs/``      what pods and gangs ask for, as immutable values
``quota/``      queues: what each is entitled to, what it uses, and what it may take now
``errors``      the exceptions that the pure core raises
``ids``         row numbers and names
``resumable``   long computations in slices

docs/design/model.md explains the choices.
"""
