"""The exact search: the cheapest choice of hosts for gangs of unequal members, within a budget.

``cheapest``     the entry: one or several kinds of pods, in slices or not
``hostvectors``  what each host can take of several kinds of pods
``slicekinds``   what slices consist of
``treeprogram``  the dynamic program over the tree of domains
``polish``       fewer ring crossings on the same hosts
"""
