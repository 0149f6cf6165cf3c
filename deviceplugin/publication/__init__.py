"""What a node says of its devices: labels, annotations, conditions. Decisions are pure."""
