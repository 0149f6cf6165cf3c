"""What a node must have for a pod: one rule per file."""
