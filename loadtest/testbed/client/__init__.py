"""A client of the API server that shares no code with Muster's own.

``api``       a plain JSON client for load drivers and observers
``nodes``     fake nodes
``observer``  the independent observer
``pods``      pods of gangs as a Job controller would create them, for drivers of load and tests
``wirejson``  JSON objects as they travel on the wire
"""
