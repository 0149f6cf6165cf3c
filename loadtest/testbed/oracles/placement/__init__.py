"""Whether a plan keeps every rule, checked without the planner."""
