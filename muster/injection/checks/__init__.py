"""What a pod's author should hear, one file per check: each from a subject to findings."""
