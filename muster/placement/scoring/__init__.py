"""Which node a single or fractional pod should take so that the fewest GPUs are stranded.

``shape``      what a pod asks for, as scoring sees it
``mix``        how often each shape was asked for: learned from arrivals, nothing else
``holes``      what a partly used device is worth, and what using it up will take of CPU
``prices``     mix and supply turned into the tables that the potential reads
``stock``      the devices, CPU and memory that are free, by node
``potential``  the worth of a node's free room; what placing a shape takes from it
``profiles``   binpack, spread and weighted instead, by name
``view``       a snapshot as scoring sees it: its stock, mix and prices
``chooser``    the best node for a shape, with scores kept per shape

docs/placement/scoring.md has the derivation and the figures.
"""
