"""What users see of a decision: Events and the gangs that are bound.

``reporter``    one log line, one Event and metrics for each decision
``boundgangs``  Events of gangs all of whose members are bound
"""
