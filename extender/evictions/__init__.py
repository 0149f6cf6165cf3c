"""Gangs that give way to another, or leave nodes: ended whole, whatever happens in between.

``marks``       what a pod carries while its gang is evicted, so that the next leader goes on
``suspension``  the PATCH that suspends a running job: its pods end, and it counts no failure
``budgets``     whether disruption budgets allow that all members of a gang end
``knownbudgets`` the budgets that the search for gangs knows before it chooses
``rates``       how many gangs of a queue give way within a minute
``memberpods``  reads the pods of a gang, and not those of its whole namespace
``hangingpods`` pods that do not go, with what keeps them
``reports``     Events, metrics and log lines
``evictor``     the worker: from an order until the room is free
``nominations`` says on pods that wait for which node others give way
``nodenotices`` the nodes that leave now, and since when it is known
``noticetimes`` since when a node says so
``drains``      has gangs leave nodes, wave by wave
``unsettledgangs`` gangs of the last wave that have no place again yet
``drainreports`` Events, metrics and log lines of that
"""
