"""Stand-ins for programs that a machine is too small for; contract suites compare them."""
