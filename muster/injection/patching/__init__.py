"""From what a pod is to get to the JSON Patch that gives it."""
