"""A machine that exists in a file only: inventory, faults and MIG as a real one has them."""
