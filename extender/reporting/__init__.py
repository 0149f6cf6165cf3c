"""What users see of a decision: Events and the gangs that are bound."""
