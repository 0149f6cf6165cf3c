"""Gangs leave nodes whole: which nodes leave, and which gangs end together.

``notices``       how a node says that it leaves: requests, and notices of clouds and autoscalers
``leavingnodes``  the nodes that leave, and from when gangs end there without another place
``waves``         which gangs end now: within budgets, rates, and one wave at a time
"""
