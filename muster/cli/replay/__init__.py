"""`muster replay`: recorded decisions, asked again."""
