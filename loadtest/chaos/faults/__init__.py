"""What goes wrong in a run, one thing after the other, several at a time.

``faults``         draws faults, and ends what lasts
``clusterfaults``  faults of nodes and pods
``machinefaults``  faults of networks and processes
"""
