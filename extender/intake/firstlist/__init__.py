"""First lists of nodes and pods, taken over into the model: by columns, or one object at a time.

``reader``    the door: ``FirstListReader``, and which of the two the configuration asks for
``plain``     every object by itself, as a change of a watch is

``pods``      a page of pods by columns: what is alike is judged once, the page is one event
``members``   members of gangs that run: one of them stands for its siblings
``siblings``  judges a member, and what holds for its siblings, too
``batch``     what of a page goes together, put together to one event
``versions``  the version in which each pod was applied, so that a later list is compared

``extender.intake.objects`` uses ``siblings`` as well, for members that come one by one. How a list
is read before is ``muster.kube.firstlist``; docs/design/first-list.md explains both.
"""
