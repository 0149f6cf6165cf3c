"""List and watch: what changed, in order, without waiting for the reader.

``listwatch``     the life of one watch: listed once, then followed, resumed, listed again
``frames``        decodes pages of lists and the frames of a watch
``readahead``     reads a watch at once, and stores its lines until the consumer has room
``inbox``         the queue between watches and a consumer
``knownobjects``  the objects that were reported, so that a new list can be reconciled with them
``ownwrites``     leaves out the events of our own writes
"""
