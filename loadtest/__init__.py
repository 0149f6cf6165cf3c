"""Fleets, traces, stand-ins and benchmarks: everything that puts Muster under load.

``livepanel``    a panel that is drawn anew on a terminal while something runs
``benches/``     one bench per file, each run by `muster bench NAME`
``chaos/``       Muster against everything that can go wrong, in virtual time, for a million steps
``cli/``         the commands of `muster` that need the source tree
``demo/``        gangs arrive on a fleet and are placed, every part talking real HTTP
``fourphase/``   four phases of mixed-priority load, and a fifth of node failures
``gate/``        ``muster bench gate``: ratios of Muster's costs beside recorded bounds
``queuereplay/`` jobs replayed on Muster's planner with queues, beside other queues' rules
``release/``     what a release consists of: the image, its layers, checksums, what it was made from
``testbed/``     a cluster on loopback
``traces/``      published traces and fleets, read or made from published figures
"""
