"""What must hold in a run, judged by the API objects alone.

``judge``         all findings, and what the users asked for
``givingway``     gangs that give way to others: who comes back, who gave way for nothing
``entitledwaits`` how long a gang waits that is entitled to what others borrow
``records``       the objects of the API server as small records
``partialgangs``  gangs that run in part: which must go, which must stay
``terms``         who led when, by the Lease and by what reached the API server
``picture``       compares the extender's model with the API objects when all is quiet
"""
