"""One module per kind of event: what it changes in the model.

``podevents``       a pod appears, changes or goes
``podsbound``       many bound pods of a list at once
``nodeevents``      a node appears, changes or goes
``nodeslisted``     many nodes of a list at once
``gangevents``      gangs, namespaces and budgets are described
``planevents``      the planner's intentions: plans held, pods released, gangs skipped, time
``quotaevents``     queues change; pods are charged to them
``ledger``          holds: entered, released, dropped, and what a changed node breaks
``hotspares``       room that gangs hold for members they may lose
``devicetroubles``  devices that the planned pods do not have or cannot use
"""
