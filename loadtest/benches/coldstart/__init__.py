"""A running cluster as its API server would list it, for the measure of a cold start.

``bench``    what the extender spends from the first byte of its lists to ready
``bodies``   what one object of each kind looks like, with marks (``@node@``) where objects differ
``chunks``   lists in the chunks that Go's net/http makes of them
``objects``  the objects of a cluster that runs, made as bytes from one template per owner
``server``   an API server that can only be listed and watched
"""
