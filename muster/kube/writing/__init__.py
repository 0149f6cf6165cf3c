"""What is written to pods, as bodies and as calls.

``podwrites``  releases, binds and evicts a pod, with every outcome as a value
``podbodies``  the bodies of these writes
``events``     Events on objects, counted and written in the background
"""
