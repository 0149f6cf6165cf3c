"""First lists of nodes and pods, read by columns, and the plain reader beside them.

Other packages import ``decoders`` and nothing else. ``extender.intake.firstlist`` is the consumer
of what is read here. docs/design/first-list.md explains all of it.

``decoders``     the entrance: ``COLUMNS``, ``PLAIN``, and the resource ``LISTED_PODS``
``plain``        one object at a time: the reference, the reader of JSON, and ``firstList: plain``

``protobuf``     a message → a wire struct, by a function that is generated for it
``onemessage``   the fields of one message, one after the other
``items``        where the items of a list begin and end

``fieldtable``   where the fields of many messages are, one step of numpy for a field of all
``podfields``    which fields of a pod count, and where they are in many pods
``shapes``       pods that have the shape of a known pod: no search for their fields
``podpage``      a page of pods as columns: UIDs, nodes, times, which of them are alike
``uids``         UIDs in text → words
``versions``     resource versions and times as numbers

``ownkeys``      which labels and annotations each pod has of its own
``ownbytes``     the bytes that a member of a gang may have of its own
``siblingkeys``  labels and annotations of siblings, read by those of the first of them
``identicalpods``        siblings that differ in names, nodes and numbers alone, found by columns

``nodelayouts``  how one node is laid out, and nodes that are laid out like it
``nodepage``     lists of nodes, read by such layouts

Objects of an unexpected form are decoded one by one, so nothing here has to know every kind of pod.
"""
