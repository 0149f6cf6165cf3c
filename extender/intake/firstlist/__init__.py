"""Applies the first lists of nodes and pods to the model: by columns, or one object at a time.

``reader``    the interface ``FirstListReader``, and the choice that the configuration makes
``plain``     applies every object by itself, like a change of a watch

``pods``      a page of pods by columns: pods that are alike are judged once, the page is one event
``members``   running members of gangs: one of them is read for all its siblings
``siblings``  judges a member, and finds out what holds for its siblings, too
``batch``     the pods of a page that are applied together, as one event
``versions``  the version in which each pod was applied, to be compared with a later list

``extender.intake.objects`` uses ``siblings`` as well, for members that arrive one by one. The room
``muster.kube.firstlist`` decodes the lists; docs/design/first-list.md explains both.
"""
