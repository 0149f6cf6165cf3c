"""What must hold, checked without the code that is checked.

``checker``        the independent judge of whole gangs and of room given away once
``devicechecker``  what pods take of single devices, by their plan annotations
``placement/``     whether a plan keeps every rule, checked without the planner
"""
