"""Jobs that look at the state from time to time: conditions, statuses, troubles."""
