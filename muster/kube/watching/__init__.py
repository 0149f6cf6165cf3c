"""List and watch: what changed, in order, without waiting for the reader.

``listwatch``     the life of one watch: listed once, then followed, resumed, listed anew
``frames``        decodes pages of lists and the frames of a watch
``readahead``     what a watch has brought, kept as bytes until the consumer has room
``inbox``         the queue between watches and a consumer
``knownobjects``  what a consumer was shown, so that a new list can be reconciled with it
``ownwrites``     leaves out what a watch shows of our own writes
"""
