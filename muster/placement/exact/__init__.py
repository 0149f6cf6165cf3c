"""The exact search: the cheapest choice of hosts for gangs of unequal members."""
