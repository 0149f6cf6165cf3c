"""What users see of a decision: log lines, Events and metrics.

``reporter``    one log line, one Event and metrics for each decision
``boundgangs``  Events of gangs with only bound members
"""
