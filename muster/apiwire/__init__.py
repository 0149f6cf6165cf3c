"""The types of the extender's HTTP API: servers encode them, clients decode them.

``status``       ``GET /v1/status``: what the extender knows, in numbers
``gangs``        ``GET /v1/gangs``: a row for each gang
``queues``       ``GET /v1/queues``: the tree of queues, and who waits in one
``explain``      ``GET /v1/explain/NS/POD``: why a pod waits, or where it goes
``decision``     a decision of the planner inside an answer: counts and words
``whatif``       ``POST /v1/whatif``: the question, and whether the gang would fit then
``room``         who gives way to a gang, or why nobody does, inside an answer
``drains``       ``GET /v1/drains``: nodes that gangs leave, and what each gang waits for
``defrag``       ``GET /v1/defrag/NS/GANG``: moves that make room for a gang
``story``        ``GET /v1/story/…``: what happened to a pod or a gang, and what caused it
``reservation``  ``POST /v1/reservations``: places for pods that are about to be made
``callersignature``  how a caller without a token shows who it is
``nodepods``     ``GET /v1/nodes/NODE/pods``: the pods of a node, for its device plugin
``problem``      any answer other than 2xx

Times are seconds since the epoch, or ISO 8601 where the field is a text. A field of
type ``UnsetType`` is left out where it does not apply. A client ignores fields that it does not
know.
"""
