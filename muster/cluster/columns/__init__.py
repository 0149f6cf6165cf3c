"""Columns, names and ids: how the model stores a million rows.

``columns``       flat columns, copied on write as a whole
``paged``         columns in pages: numbers, objects, names with dense ids
``texts``         texts of a list's page, found in an index many at a time
``uids``          UIDs of pods in columns, and the table that finds their rows
``poddirectory``  pods by UID, and by name while they are not bound
``labelpages``    labels of a list's page, by key
``nodelabels``    labels of nodes: a column for each key
"""
