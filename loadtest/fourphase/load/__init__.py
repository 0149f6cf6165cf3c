"""What a load test asks for: pools, jobs, their schedule, and faults by name."""
