"""Which resources a node has: names, MIG strategies, sharing, pools of NICs, ids. Pure."""
