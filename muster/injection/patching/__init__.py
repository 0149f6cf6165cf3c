"""From what a pod is to get to the JSON Patch that gives it.

``additions``    the pieces of a pod that profiles and rules add, as they travel
``apply``        JSON Patch (RFC 6902) done to JSON values
``containers``   which of the wanted additions one container gets
``draft``        which of the wanted additions a pod gets: the user's own values win
``emission``     from what a pod is to have to the patch: nothing but paths and missing parents
``operations``   JSON Patch operations (RFC 6902), built by hand
``podsecurity``  the namespace's level of Pod Security: only what it allows is added
``pointers``     JSON values and JSON Pointers (RFC 6901)
``record``       the ledger that a changed pod carries: what was set, and by which source
"""
